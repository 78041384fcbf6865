#include "sim/explain/throw_watch.h"

#include <dlfcn.h>

#include <utility>

#include "core/fibers/sanitizer.h"

namespace rehearsal::sim {
namespace {

// Of the thread: a run has one, and what other threads throw is not told. The fiber that throws is
// the one that runs.
thread_local const ThrowWatch* innermost = nullptr;

}  // namespace

ThrowWatch::ThrowWatch(ThrowListener& listener)
    : listener_(listener), before_(std::exchange(innermost, this)) {}
ThrowWatch::~ThrowWatch() { innermost = before_; }

void tell_of_throw(const std::type_info& type, void* object) {
  // A listener's own throws are its own.
  const ThrowWatch* const watching = std::exchange(innermost, nullptr);
  if (watching == nullptr) return;
  void* base = object;
  const bool is_exception = typeid(std::exception).__do_catch(&type, &base, 1);
  const auto* thrown = is_exception ? static_cast<const std::exception*>(base) : nullptr;
  for (const ThrowWatch* watch = watching; watch != nullptr; watch = watch->before_)
    watch->listener_.on_throw(type, thrown, object);
  innermost = watching;
}

}  // namespace rehearsal::sim

// In an executable it comes before the C++ library's, for every library of the process. The name is
// the compiler's; tests/sim/explain/throw_watch_test.cc throws from all of them.
namespace rehearsal::sim::replaced {

using Throw = void (*)(void* object, std::type_info* type, void (*destroy)(void*));

[[noreturn]] void throw_exception(void* object, std::type_info* type,
                                  void (*destroy)(void*)) asm("__cxa_throw");
[[noreturn]] void throw_exception(void* object, std::type_info* type, void (*destroy)(void*)) {
  static const auto next = reinterpret_cast<Throw>(dlsym(RTLD_NEXT, "__cxa_throw"));
  if (innermost != nullptr) [[unlikely]]
    tell_of_throw(*type, object);
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  __asan_handle_no_return();  // as its own version of this function does
#endif
  next(object, type, destroy);
  __builtin_unreachable();
}

}  // namespace rehearsal::sim::replaced
