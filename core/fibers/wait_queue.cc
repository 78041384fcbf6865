// In the place of Boost.Fiber's src/waker.cpp, and of try_lock_until: every wait in one of its
// primitives, and every wake, goes through these functions. An execution waits as it waits for
// anything: parked by its Runtime, known to its node, ended by what ends any wait. Code that runs
// in no execution waits as in Boost.
//
// The shared library calls these functions through its procedure linkage table, so that the
// program's definition takes the place of its own; with the archive, its own object is not pulled
// in. Neither these functions nor their callers in the primitives are noexcept, but for two: a
// condition that takes its lock back, and try_lock_until.
#include "core/fibers/wait_queue.h"

#include <dlfcn.h>

#include <boost/fiber/context.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>
#include <boost/fiber/recursive_timed_mutex.hpp>
#include <boost/fiber/timed_mutex.hpp>
#include <boost/fiber/waker.hpp>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/code_wait.h"
#include "core/base/node_strand.h"
#include "core/base/symbols.h"
#include "core/fibers/carrier.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/fiber.h"
#include "core/fibers/refusal.h"

namespace rehearsal::fibers {
namespace {

using boost::fibers::context;
using boost::fibers::waker;
using boost::fibers::waker_with_hook;

// So often the thread's code has waited here.
thread_local uint64_t waits = 0;

// Stands before a wait that no exception can leave.
thread_local bool next_cannot_throw = false;

// The wait of an execution. The queue's own member of it is a waker_with_hook, as of every wait.
class ExecutionWait final : public CodeWait {
 public:
  ExecutionWait(AtKill at_kill, NodeStrand& strand, const void* queue, void* caller)
      : CodeWait(at_kill), strand_(strand), queue_(queue), caller_(caller) {}

  std::string describe() const override {
    std::string text = primitive();
    if (text.empty()) text = in_program();
    if (text.empty()) text = "a condition, future or channel of Boost.Fiber";
    const Execution* const owner = mutex_owner();
    if (owner == nullptr) return text;
    const bool is_main = owner->label() == strand_.name();
    return text + ", held by " + (is_main ? "main" : std::string(owner->label()));
  }

  std::optional<Hash128> holder() const override {
    const Execution* const owner = mutex_owner();
    return owner == nullptr ? std::nullopt : std::optional(owner->path());
  }

  bool wake() {
    check_owner();
    return strand_.wake_by_code(*this);
  }

 private:
  static constexpr std::string_view kBoost = "boost::fibers::";

  [[nodiscard]] const void* place_in_caller() const {
    return static_cast<const char*>(caller_) - 1;
  }

  // "boost::fibers::buffered_channel", or where the compiler has made its code a part of the
  // program's: "a condition, future or channel of Boost.Fiber in take(CallContext&)". Reads the
  // program's file, once for each place.
  [[nodiscard]] const std::string& in_program() const {
    thread_local std::map<const void*, std::string> known;
    const auto [place, is_new] = known.try_emplace(caller_);
    if (!is_new) return place->second;
    const std::string function = ProgramSymbols().function_at(place_in_caller());
    // Of a template's function the type it returns comes first.
    const std::string_view name =
        std::string_view(function).substr(0, function.find_first_of("<("));
    const size_t start = name.rfind(' ') + 1;
    if (name.substr(start).starts_with(kBoost))
      place->second = name.substr(start);
    else if (!function.empty())
      place->second = "a condition, future or channel of Boost.Fiber in " + function;
    return place->second;
  }

  // "boost::fibers::mutex::lock()"; empty: its code is not in Boost's shared library.
  [[nodiscard]] std::string primitive() const {
    Dl_info info{};
    if (dladdr(place_in_caller(), &info) == 0 || info.dli_sname == nullptr) return {};
    std::string name = demangled(info.dli_sname);
    return name.starts_with(kBoost) ? name : std::string();
  }

  // A mutex keeps its owner behind its queue; another thread may be changing it.
  [[nodiscard]] const Execution* mutex_owner() const {
    if (primitive().find("mutex::") == std::string::npos) return nullptr;
    const auto* const place = static_cast<const char*>(queue_) + sizeof(boost::fibers::wait_queue);
    const context* const owner = *reinterpret_cast<context* const*>(place);
    const Carrier* const carrier = owner == nullptr ? nullptr : Carrier::of(owner);
    return carrier == nullptr || carrier->fiber() == nullptr ? nullptr
                                                             : carrier->fiber()->execution();
  }

  void check_owner() const {
    const Execution* const mine = running_execution();
    if (mine == nullptr || mine->strand == nullptr || mine->strand == &strand_) return;
    refuse("a primitive of Boost.Fiber in which code of worker '" + strand_.name() + "' waits",
           "workers share no memory. Call a function of that one instead");
  }

  NodeStrand& strand_;
  const void* const queue_;
  void* const caller_;
};

// A wait as it stands in a queue.
struct Entry final : waker_with_hook {
  Entry(waker&& of_context, ExecutionWait* execution)
      : waker_with_hook(std::move(of_context)), execution(execution) {}
  bool wake_it() { return execution != nullptr ? execution->wake() : wake(); }
  ExecutionWait* const execution;  // null: it waits as in Boost
};

// Null: whoever runs on this stack waits as in Boost.
Execution* running_in(const context* active) {
  Execution* const running = running_execution();
  if (running != nullptr && running->strand != nullptr) return running;
  if (Carrier::of(active) != nullptr)
    refuse("a primitive of Boost.Fiber", "no execution of a worker runs here");
  return nullptr;
}

// A condition's `wait` lets its lock go, waits, and takes the lock back; an exception that leaves
// the last of these ends the program. It is known by what the execution did before: it woke
// somebody in the lock's queue, then waited in another one, then comes back to the first.
class RetakenLock {
 public:
  RetakenLock(Execution& execution, const void* queue)
      : execution_(execution),
        queue_(queue),
        is_it_(std::exchange(execution.retakes, nullptr) == queue),
        let_go_(std::exchange(execution.woke_in, nullptr)) {}
  [[nodiscard]] bool is_it() const { return is_it_; }
  // The wait has ended without an exception. The lock may have gone to another by then.
  void waited() const { execution_.retakes = is_it_ ? queue_ : let_go_; }
  static void note_wake(const void* queue) {
    Execution* const running = running_execution();
    if (running == nullptr) return;
    running->retakes = nullptr;
    running->woke_in = queue;
  }

 private:
  Execution& execution_;
  const void* const queue_;
  const bool is_it_;
  const void* const let_go_;
};

AtKill at_kill(bool can_throw) {
  if (!can_throw) return AtKill::stays;
  return std::uncaught_exceptions() > 0 ? AtKill::lasts : AtKill::ends;
}

// While it lives, the carrier's fiber does this when it is abandoned; null: there is none.
class AbandonGuard {
 public:
  template <class TakeOut>
  AbandonGuard(Carrier* carrier, TakeOut& take_out)
      : fiber_(carrier != nullptr ? carrier->fiber() : nullptr) {
    if (fiber_ != nullptr) fiber_->set_on_abandon([&take_out] { take_out(); });
  }
  ~AbandonGuard() {
    if (fiber_ != nullptr) fiber_->set_on_abandon(nullptr);
  }
  AbandonGuard(const AbandonGuard&) = delete;
  AbandonGuard& operator=(const AbandonGuard&) = delete;

 private:
  Fiber* const fiber_;
};

using Queue = boost::fibers::detail::waker_slist_t;
using Lock = boost::fibers::detail::spinlock_lock;

// Whether it was woken.
bool wait_as_execution(Execution& execution, Queue& queue, Lock& lock, context* active,
                       void* caller, std::optional<Instant> until) {
  const RetakenLock retaken(execution, &queue);
  const bool can_throw = !std::exchange(next_cannot_throw, false) && !retaken.is_it();
  ExecutionWait wait(at_kill(can_throw), *execution.strand, &queue, caller);
  wait.until = until;
  Entry entry(active->create_waker(), &wait);
  queue.push_back(entry);
  lock.unlock();
  const auto leave_queue = [&] {
    lock.lock();
    if (entry.is_linked()) queue.remove(entry);
    lock.unlock();
  };
  const AbandonGuard abandoned(wait.may_throw() ? nullptr : Carrier::of(active), leave_queue);
  try {
    const bool woken = execution.strand->wait_in_code(wait);
    if (!woken) leave_queue();
    retaken.waited();
    return woken;
  } catch (...) {
    leave_queue();
    throw;
  }
}

bool a_wait_comes_here() {
  const ScopedExecution nobody(nullptr);
  boost::fibers::mutex mutex;
  mutex.lock();
  const uint64_t before = waits;
  boost::fibers::fiber waiter([&mutex] { const std::lock_guard lock(mutex); });
  boost::this_fiber::yield();
  const bool came = waits == before + 1;
  mutex.unlock();
  waiter.join();
  return came;
}

}  // namespace

bool wait_queue_is_ours() {
  static const bool ours = a_wait_comes_here();
  return ours;
}

}  // namespace rehearsal::fibers

namespace boost::fibers {

namespace ours = rehearsal::fibers;
using rehearsal::Execution;
using SteadyInstant = std::chrono::steady_clock::time_point;

bool waker::wake() const noexcept { return ctx_->wake(epoch_); }

void wait_queue::suspend_and_wait(detail::spinlock_lock& lock, context* active) {
  ++ours::waits;
  if (Execution* const execution = ours::running_in(active)) {
    ours::wait_as_execution(*execution, slist_, lock, active, __builtin_return_address(0), {});
    return;
  }
  ours::Entry entry(active->create_waker(), nullptr);
  slist_.push_back(entry);
  active->suspend(lock);
}

bool wait_queue::suspend_and_wait_until(detail::spinlock_lock& lock, context* active,
                                        const SteadyInstant& when) {
  if (Execution* const execution = ours::running_in(active))
    return ours::wait_as_execution(*execution, slist_, lock, active, __builtin_return_address(0),
                                   rehearsal::Instant(when.time_since_epoch()));
  ours::Entry entry(active->create_waker(), nullptr);
  slist_.push_back(entry);
  if (active->wait_until(when, lock, waker(entry))) return true;
  lock.lock();
  if (entry.is_linked()) slist_.remove(entry);
  lock.unlock();
  return false;
}

void wait_queue::notify_one() {
  ours::RetakenLock::note_wake(&slist_);
  while (!slist_.empty()) {
    auto& first = static_cast<ours::Entry&>(slist_.front());
    slist_.pop_front();
    if (first.wake_it()) break;
  }
}

void wait_queue::notify_all() {
  ours::RetakenLock::note_wake(&slist_);
  while (!slist_.empty()) {
    auto& first = static_cast<ours::Entry&>(slist_.front());
    slist_.pop_front();
    first.wake_it();
  }
}

bool wait_queue::empty() const { return slist_.empty(); }

// The library's own two read the machine's clock first.

bool timed_mutex::try_lock_until_(const SteadyInstant& when) noexcept {
  for (;;) {
    context* const active = context::active();
    detail::spinlock_lock lock(wait_queue_splk_);
    if (owner_ == nullptr) {
      owner_ = active;
      return true;
    }
    ours::next_cannot_throw = true;
    if (!wait_queue_.suspend_and_wait_until(lock, active, when)) return false;
  }
}

bool recursive_timed_mutex::try_lock_until_(const SteadyInstant& when) noexcept {
  for (;;) {
    context* const active = context::active();
    detail::spinlock_lock lock(wait_queue_splk_);
    if (owner_ == nullptr || owner_ == active) {
      owner_ = active;
      ++count_;
      return true;
    }
    ours::next_cannot_throw = true;
    if (!wait_queue_.suspend_and_wait_until(lock, active, when)) return false;
  }
}

}  // namespace boost::fibers
