#include "core/api/started_calls.h"

namespace rehearsal {

Status StartedCalls::wait(const std::shared_ptr<NodeStrand>& strand) {
  struct Waiting {
    std::vector<std::shared_ptr<FutureCore>> started;
    std::vector<MaybeError> errors;
    size_t missing = 0;
  };
  auto waiting = std::make_shared<Waiting>();
  waiting->started = std::exchange(started_, {});
  waiting->missing = waiting->started.size();
  waiting->errors.resize(waiting->missing);
  if (waiting->missing == 0) return Unit{};
  const Status waited = strand->wait("all calls that were started", {}, [&](WaitHandle handle) {
    for (size_t i = 0; i < waiting->started.size(); ++i)
      waiting->started[i]->observe([waiting, i, handle](FutureCore& complete) {
        if (complete.error() != nullptr) waiting->errors[i] = *complete.error();
        if (--waiting->missing == 0) handle.end();
      });
  });
  if (!waited.ok()) return waited;
  for (const MaybeError& error : waiting->errors)
    if (error) return *error;
  return Unit{};
}

}  // namespace rehearsal
