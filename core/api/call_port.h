#pragma once

#include <optional>

#include "core/api/draft.h"
#include "core/base/result.h"
#include "core/base/unique_function.h"

namespace rehearsal {

// The next value of a stream, encoded; none: it has ended. Or why it did.
using NextValue = Result<std::optional<Answer>>;
using ValueTaker = UniqueFunction<void(NextValue&&)>;

// The one way by which typed code makes its calls: all behind it may change without it. On the
// strand.
class CallPort {
 public:
  virtual ~CallPort() = default;

  // Sends it, with `call.time_left` filled in.
  virtual void start(Draft&& draft, WhenAnswered done) = 0;

  // The next value of a stream that a call of this id opened, now or when it comes.
  virtual void take(const CallId& id, IncomingStream& stream, ValueTaker taker) = 0;

  // Gives up a call: its callee is told, and it completes with the error that is returned. Nothing
  // if it has completed already.
  virtual Error cancel(const CallId& id) = 0;
};

}  // namespace rehearsal
