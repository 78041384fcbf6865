#include "core/api/wait_all.h"

namespace rehearsal {

WaitAll::~WaitAll() {
  try {
    static_cast<void>(started_.wait(caller()->strand()));
  } catch (const NodeKilled&) {
    // A killed stack learns it from its next call.
  }
}

void WaitAll::finish() {
  const Status status = started_.wait(caller()->strand());
  if (!status.ok()) throw RpcError(status.error());
}

}  // namespace rehearsal
