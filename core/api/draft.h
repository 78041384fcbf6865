#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"
#include "core/wire/message.h"

namespace rehearsal {

class DeviceMap;       // core/values/device_map.h
class IncomingStream;  // core/calls/incoming_stream.h

// How long a call may take: the worker's default, a length of time, or for ever (zero).
class Timeout {
 public:
  Timeout() = default;
  // Throws std::invalid_argument for a negative time. A time above zero is not rounded to zero.
  template <class Representation, class Period>
  Timeout(std::chrono::duration<Representation, Period> time)
      : time_(std::chrono::ceil<Duration>(time)) {
    if (time_->count() < 0) throw std::invalid_argument("a timeout is negative");
  }
  static Timeout never() { return Timeout(Duration(0)); }

  [[nodiscard]] Duration or_default(Duration fallback) const { return time_.value_or(fallback); }

 private:
  std::optional<Duration> time_;
};

// A call being made: filled by typed code, on the caller's own stack. It is handed on by reference
// to whoever sends it, because it is large.
struct Draft {
  WorkerId to;
  Call call;
  std::string function;       // for errors
  bool gives_ivalue = false;  // the result of an operator or a script function
  Timeout timeout;
  std::shared_ptr<RRefHandle> target;      // of proxy calls and fetches; lives until the answer
  std::optional<Instant> deadline;         // of the execution that calls, or of its shield
  bool shielded = false;                   // it is not given up with the execution that calls
  std::shared_ptr<IncomingStream> stream;  // what comes of it, if that is a stream
  std::string made_in;                     // of creations: the label of the execution that calls
  const DeviceMap* devices = nullptr;      // for the arguments; null: there is no map
  DeviceWay lend;                          // the same
};

// The answer to a call: the value, encoded, and the autograd message it carries; with the function
// that was called, and whether that was in an autograd context.
struct Answer {
  WorkerId from;
  Payload value;
  std::optional<AutogradMetadata> autograd;
  std::string function = {};
  bool in_context = false;
};

// Told the answer, or why there is none; once, on the strand.
using WhenAnswered = UniqueFunction<void(Result<Answer>&&)>;

}  // namespace rehearsal
