#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/result.h"

namespace rehearsal {

// The node's additions to the errors that exceptions of its user code become.
class ExceptionHook {
 public:
  virtual ~ExceptionHook() = default;
  // `thrown` is being handled and has become `error` in `function`.
  virtual void complete(Error& error, const std::exception& thrown,
                        std::string_view function) const = 0;
};

// The exception being handled, as an Error of worker `worker` in `function`: one that came from a
// call (error_of) keeps its kind and gains `worker` in its chain, any other becomes
// remote_exception with the exception's type name and text. All of it is kept short
// (short_text.h). Without a `hook` the exception itself is not carried. Call it inside a catch
// block. NodeKilled is rethrown.
[[nodiscard]] Error current_exception_as_error(std::string_view worker, std::string_view function,
                                               const ExceptionHook* hook = nullptr);

// The one way into code that is not ours: runs `body` and turns whatever it throws into an Error.
// NodeKilled passes through.
template <class F>
auto run_user_code(std::string_view worker, std::string_view function, F&& body,
                   const ExceptionHook* hook = nullptr)
    -> Result<std::conditional_t<std::is_void_v<std::invoke_result_t<F>>, Unit,
                                 std::decay_t<std::invoke_result_t<F>>>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      std::forward<F>(body)();
      return Unit{};
    } else {
      return std::forward<F>(body)();
    }
  } catch (...) {
    return current_exception_as_error(worker, function, hook);
  }
}

}  // namespace rehearsal
