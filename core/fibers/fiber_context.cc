// In the place of some functions of Boost.Fiber's src/context.cpp, by which code gives way, sleeps,
// or keeps values for its fiber: an execution does so as its node wants it. For code that runs in
// no execution the library's own functions do what they did.
//
// These functions are noexcept, so that what an execution may not do ends the process, by name.
#include <dlfcn.h>

#include <boost/fiber/context.hpp>

#include "core/base/error.h"
#include "core/base/node_strand.h"
#include "core/fibers/carrier.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/refusal.h"

namespace rehearsal::fibers {
namespace {

// The function of this symbol that the library has.
template <class Function>
Function* of_library(const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
}

bool runs_execution() {
  const Execution* const running = running_execution();
  return running != nullptr && running->strand != nullptr;
}

// No exception can leave Boost's function. Code that gives way now and then is told of the end of
// its node by its next wait; one that does nothing else stays where it is.
void give_way(Execution& execution) {
  constexpr uint32_t kNowAndThen = 64;
  bool is_killed = false;
  try {
    execution.strand->give_way();
  } catch (const NodeKilled&) {
    is_killed = true;
  }
  if (is_killed && execution.gave_way > kNowAndThen) execution.strand->stay();
}

}  // namespace
}  // namespace rehearsal::fibers

namespace boost::fibers {

namespace ours = rehearsal::fibers;
using SteadyInstant = std::chrono::steady_clock::time_point;

void context::yield() noexcept {
  if (ours::runs_execution()) return ours::give_way(*ours::running_execution());
  if (ours::Carrier::of(this) != nullptr) return;  // Protocol code on an execution's stack.
  static auto* const own = ours::of_library<void(context*)>("_ZN5boost6fibers7context5yieldEv");
  own(this);
}

bool context::wait_until(const SteadyInstant& when) noexcept {
  if (ours::runs_execution())
    ours::refuse("boost::this_fiber::sleep_until", "wait with worker.sleep instead");
  static auto* const own = ours::of_library<bool(context*, const SteadyInstant&)>(
      "_ZN5boost6fibers7context10wait_untilERKNSt6chrono10time_pointINS2_3_V212steady_clockENS2_"
      "8durationIlSt5ratioILl1ELl1000000000EEEEEE");
  return own(this, when);
}

void context::suspend(detail::spinlock_lock& lock) noexcept {
  if (ours::runs_execution())
    ours::refuse("boost::fibers::unbuffered_channel::push",
                 "no error can end its wait. Use a buffered_channel instead");
  static auto* const own = ours::of_library<void(context*, detail::spinlock_lock&)>(
      "_ZN5boost6fibers7context7suspendERSt11unique_lockINS0_6detail13spinlock_ttasEE");
  own(this, lock);
}

// A stack runs one execution after another: a value would go from one to the next.
void context::set_fss_data(const void* key, const detail::fss_cleanup_function::ptr_t& cleanup,
                           void* data, bool cleanup_existing) {
  if (ours::runs_execution())
    ours::refuse("boost::fibers::fiber_specific_ptr",
                 "keep the value in a variable of the function instead");
  static auto* const own = ours::of_library<void(
      context*, const void*, const detail::fss_cleanup_function::ptr_t&, void*, bool)>(
      "_ZN5boost6fibers7context12set_fss_dataEPKvRKNS_13intrusive_ptrINS0_6detail20fss_cleanup_"
      "functionEEEPvb");
  own(this, key, cleanup, data, cleanup_existing);
}

}  // namespace boost::fibers
