// Goal: the primitives of Boost.Fiber work between the executions of one worker, in both worlds:
// each wait blocks its execution alone, is woken, and ends with whatever ends any wait. Method:
// functions of a server that share the server's state; a caller that calls them side by side.
#include <boost/fiber/all.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::primitives_test {
namespace {

namespace bf = boost::fibers;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Something to wait in and to be woken from, so often each.
class Kind {
 public:
  virtual ~Kind() = default;
  virtual void wait() = 0;
  virtual void wake() = 0;
};

template <class Condition>
class WaitsInCondition final : public Kind {
 public:
  void wait() override {
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [this] { return tokens_ > 0; });
    --tokens_;
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    ++tokens_;
    condition_.notify_one();
  }

 private:
  bf::mutex mutex_;
  Condition condition_;
  int64_t tokens_ = 0;
};

class WaitsInEmptyChannel final : public Kind {
 public:
  void wait() override { EXPECT_EQ(channel_.value_pop(), 7); }
  void wake() override { channel_.push(7); }

 private:
  bf::buffered_channel<int64_t> channel_{8};
};

class WaitsInFullChannel final : public Kind {
 public:
  WaitsInFullChannel() {
    while (channel_.try_push(7) == bf::channel_op_status::success) continue;
  }
  void wait() override { channel_.push(7); }
  void wake() override { EXPECT_EQ(channel_.value_pop(), 7); }

 private:
  bf::buffered_channel<int64_t> channel_{4};
};

class WaitsInFuture final : public Kind {
 public:
  void wait() override { EXPECT_EQ(future_.get(), 7); }
  void wake() override {
    if (!std::exchange(set_, true)) promise_.set_value(7);
  }

 private:
  bool set_ = false;
  bf::promise<int64_t> promise_;
  bf::shared_future<int64_t> future_{promise_.get_future().share()};
};

class WaitsInTask final : public Kind {
 public:
  void wait() override { EXPECT_EQ(future_.get(), 7); }
  void wake() override {
    if (!std::exchange(ran_, true)) task_();
  }

 private:
  bool ran_ = false;
  bf::packaged_task<int64_t()> task_{[] { return int64_t{7}; }};
  bf::shared_future<int64_t> future_{task_.get_future().share()};
};

class WaitsInBarrier final : public Kind {
 public:
  void wait() override { barrier_.wait(); }
  void wake() override { barrier_.wait(); }

 private:
  bf::barrier barrier_{2};
};

// Each execution gives way while it has the mutex.
template <class Mutex>
class WaitsInMutex final : public Kind {
 public:
  void wait() override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(std::exchange(taken_, true));
    boost::this_fiber::yield();
    taken_ = false;
  }
  void wake() override { wait(); }

 private:
  Mutex mutex_;
  bool taken_ = false;
};

enum : int64_t { kBarrier = 6, kKinds = 11 };

std::unique_ptr<Kind> make_kind(int64_t number) {
  switch (number) {
    case 0:
      return std::make_unique<WaitsInCondition<bf::condition_variable>>();
    case 1:
      return std::make_unique<WaitsInCondition<bf::condition_variable_any>>();
    case 2:
      return std::make_unique<WaitsInEmptyChannel>();
    case 3:
      return std::make_unique<WaitsInFullChannel>();
    case 4:
      return std::make_unique<WaitsInFuture>();
    case 5:
      return std::make_unique<WaitsInTask>();
    case kBarrier:
      return std::make_unique<WaitsInBarrier>();
    case 7:
      return std::make_unique<WaitsInMutex<bf::mutex>>();
    case 8:
      return std::make_unique<WaitsInMutex<bf::recursive_mutex>>();
    case 9:
      return std::make_unique<WaitsInMutex<bf::timed_mutex>>();
    default:
      return std::make_unique<WaitsInMutex<bf::recursive_timed_mutex>>();
  }
}

// The executions of the server share it.
struct Shared {
  explicit Shared(int64_t number) : kind(make_kind(number)) {}
  const std::unique_ptr<Kind> kind;
  bf::mutex mutex;
  bf::timed_mutex timed;
  bf::condition_variable changed;
  bool open = false;
  int64_t inside = 0;  // of the section that one at a time may be in
  int64_t waiting = 0;
  int64_t cancelled = 0;
};

void waits(CallContext& context) {
  Shared& shared = context.state<Shared>();
  struct Count {
    explicit Count(int64_t& of) : of(of) { ++of; }
    ~Count() { --of; }
    int64_t& of;
  } const count(shared.waiting);
  try {
    shared.kind->wait();
  } catch (const RpcError& error) {
    EXPECT_EQ(error.error().kind, ErrorKind::cancelled) << error.what();
    EXPECT_TRUE(contains(error.error().text, "nobody waits any more")) << error.what();
    ++shared.cancelled;
    throw;
  }
}

void wakes(CallContext& context) { context.state<Shared>().kind->wake(); }

std::vector<int64_t> numbers(CallContext& context) {
  const Shared& shared = context.state<Shared>();
  return {shared.waiting, shared.cancelled};
}

int64_t echo(int64_t number) { return number; }

// Calls its caller while it holds the mutex.
int64_t calls_in_lock(CallContext& context, int64_t number) {
  Shared& shared = context.state<Shared>();
  const std::lock_guard lock(shared.mutex);
  EXPECT_EQ(++shared.inside, 1);
  const int64_t back = context.rpc_sync(context.caller_info().id, &echo, number);
  --shared.inside;
  return back;
}

// An instant of the worker's own time, as Boost wants it.
std::chrono::steady_clock::time_point instant_of(Instant when) {
  return std::chrono::steady_clock::time_point(when.time_since_epoch());
}

// Waits for what may come, no longer than so many milliseconds; whether it came.
bool waits_until(CallContext& context, int64_t time) {
  Shared& shared = context.state<Shared>();
  const Instant until = context.now() + milliseconds(time);
  std::unique_lock lock(shared.mutex);
  const bool came =
      shared.changed.wait_until(lock, instant_of(until), [&shared] { return shared.open; });
  EXPECT_TRUE(came || context.now() >= until);
  return came;
}

void opens(CallContext& context) {
  Shared& shared = context.state<Shared>();
  const std::lock_guard lock(shared.mutex);
  shared.open = true;
  shared.changed.notify_all();
}

// Whether it had the timed mutex within so many milliseconds, and held it as long.
bool holds_for(CallContext& context, int64_t time) {
  Shared& shared = context.state<Shared>();
  const Instant until = context.now() + milliseconds(time);
  if (!shared.timed.try_lock_until(instant_of(until))) {
    EXPECT_GE(context.now(), until);
    return false;
  }
  context.sleep(milliseconds(time));
  shared.timed.unlock();
  return true;
}

// Asks again and again, as code does that has nothing better.
void spins(CallContext& context) {
  Shared& shared = context.state<Shared>();
  while (!shared.open) boost::this_fiber::yield();
  while (!shared.mutex.try_lock()) boost::this_fiber::yield();
  shared.mutex.unlock();
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("waits_until", &waits_until).function("opens", &opens);
  registry.function("holds_for", &holds_for).function("spins", &spins);
  registry.function("waits", &waits).function("wakes", &wakes).function("numbers", &numbers);
  registry.function("echo", &echo).function("calls_in_lock", &calls_in_lock);
  return registry;
}

Program program_of(int64_t kind, const Program::Main& caller) {
  Program program(functions());
  program.worker("caller", caller);
  program.worker("server").state<Shared>(kind);
  return program;
}

TEST(Primitives, OfEveryKindBlockTheirExecutionAloneAndAreWoken) {
  for (int64_t kind = 0; kind < kKinds; ++kind) {
    SCOPED_TRACE(kind);
    in_both_worlds(program_of(kind, [](Worker& worker) {
      std::vector<Future<Unit>> ends;
      for (int i = 0; i < 2; ++i) ends.push_back(worker.rpc_async("server", &waits));
      for (int i = 0; i < 2; ++i) ends.push_back(worker.rpc_async("server", &wakes));
      for (const Future<Unit>& end : ends) end.wait();
      EXPECT_EQ(worker.rpc_sync("server", &numbers), (std::vector<int64_t>{0, 0}));
    }));
  }
}

TEST(Primitives, AMutexMayBeHeldAcrossACall) {
  in_both_worlds(program_of(0, [](Worker& worker) {
    std::vector<Future<int64_t>> calls;
    for (int64_t i = 0; i < 5; ++i) calls.push_back(worker.rpc_async("server", &calls_in_lock, i));
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(calls[static_cast<size_t>(i)].wait(), i);
  }));
}

// Goal: a wait ends with the call that it is part of, its destructors run, and the primitive serves
// the others as before. Method: a call that nobody wakes has little time; then others come.
TEST(Primitives, OfEveryKindLetGoOfACallThatWasGivenUp) {
  for (int64_t kind = 0; kind < kBarrier; ++kind) {
    SCOPED_TRACE(kind);
    in_both_worlds(program_of(kind, [](Worker& worker) {
      EXPECT_EQ(kind_of([&] { worker.with_timeout(milliseconds(50)).rpc_sync("server", &waits); }),
                ErrorKind::timeout);
      while (worker.rpc_sync("server", &numbers) != std::vector<int64_t>{0, 1})
        worker.sleep(milliseconds(5));
      const Future<Unit> waiter = worker.rpc_async("server", &waits);
      worker.rpc_sync("server", &wakes);
      waiter.wait();
    }));
  }
}

TEST(Primitives, AWaitMayEndAtAnInstantOfTheWorkersOwnTime) {
  in_both_worlds(program_of(0, [](Worker& worker) {
    EXPECT_FALSE(worker.rpc_sync("server", &waits_until, int64_t{20}));
    const auto patient = worker.rpc_async("server", &waits_until, int64_t{100'000});
    worker.rpc_sync("server", &opens);
    EXPECT_TRUE(patient.wait());
    const auto first = worker.rpc_async("server", &holds_for, int64_t{200});
    const auto second = worker.rpc_async("server", &holds_for, int64_t{20});
    const bool first_had_it = first.wait();
    EXPECT_TRUE(second.wait() || first_had_it);
    EXPECT_TRUE(worker.rpc_sync("server", &holds_for, int64_t{1}));
  }));
}

TEST(Primitives, CodeThatAsksAgainAndAgainLetsOthersGoOn) {
  in_both_worlds(program_of(0, [](Worker& worker) {
    const Future<Unit> spinner = worker.rpc_async("server", &spins);
    worker.sleep(milliseconds(5));
    worker.rpc_sync("server", &opens);
    spinner.wait();
  }));
}

}  // namespace
}  // namespace rehearsal::reference::primitives_test
