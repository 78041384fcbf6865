#include "core/rref/started_calls.h"

namespace rehearsal {

Status StartedCalls::wait(const std::shared_ptr<Mailbox>& mailbox) {
  struct Waiting {
    std::vector<Observe> observers;
    std::vector<MaybeError> errors;
    size_t missing = 0;
  };
  auto waiting = std::make_shared<Waiting>();
  waiting->observers = std::exchange(observers_, {});
  waiting->missing = waiting->observers.size();
  waiting->errors.resize(waiting->missing);
  if (waiting->missing == 0) return Unit{};
  const Status waited = mailbox->wait("all calls that were started", {}, [&](WaitHandle handle) {
    for (size_t i = 0; i < waiting->observers.size(); ++i)
      waiting->observers[i]([waiting, i, handle](const MaybeError& error) {
        waiting->errors[i] = error;
        if (--waiting->missing == 0) handle.end();
      });
  });
  if (!waited.ok()) return waited;
  for (const MaybeError& error : waiting->errors)
    if (error) return *error;
  return Unit{};
}

}  // namespace rehearsal
