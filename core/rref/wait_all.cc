#include "core/api/wait_all.h"

namespace rehearsal {

WaitAll::~WaitAll() {
  try {
    static_cast<void>(started_.wait(caller()->mailbox()));
  } catch (const NodeKilled&) {
    // Who was killed learns it from the next call.
  }
}

void WaitAll::finish() {
  const Status status = started_.wait(caller()->mailbox());
  if (!status.ok()) throw RpcError(status.error());
}

}  // namespace rehearsal
