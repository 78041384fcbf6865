// Goal: the primitives of Boost.Fiber work between the executions of one worker, in both worlds:
// each wait blocks its execution alone, is woken, and ends with whatever ends any wait. Method:
// functions of a server that share the server's state; a caller that calls them side by side.
#include "tests/primitives.h"

#include <atomic>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>
#include <boost/fiber/timed_mutex.hpp>
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

// The executions of the server share it, which over TCP run on several threads.
struct Shared {
  explicit Shared(int64_t number) : kind(make_primitive(number)) {}
  const std::unique_ptr<Primitive> kind;
  bf::mutex mutex;
  bf::timed_mutex timed;
  bf::condition_variable changed;
  std::atomic<bool> open = false;
  int64_t inside = 0;  // of the section that one at a time may be in
  std::atomic<int64_t> waiting = 0;
  std::atomic<int64_t> cancelled = 0;
};

void waits(CallContext& context) {
  Shared& shared = context.state<Shared>();
  struct Count {
    explicit Count(std::atomic<int64_t>& of) : of(of) { ++of; }
    ~Count() { --of; }
    std::atomic<int64_t>& of;
  } const count(shared.waiting);
  try {
    shared.kind->wait(context);
  } catch (const RpcError& error) {
    if (error.kind() == ErrorKind::node_stopped) throw;
    EXPECT_EQ(error.kind(), ErrorKind::cancelled) << error.what();
    EXPECT_TRUE(contains(error.error().text, "nobody waits any more")) << error.what();
    ++shared.cancelled;
    throw;
  }
}

void wakes(CallContext& context) { context.state<Shared>().kind->wake(context); }

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
      shared.changed.wait_until(lock, instant_of(until), [&shared] { return shared.open.load(); });
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

// ---- what a worker tells ----

void takes(CallContext& context) { const std::lock_guard lock(context.state<Shared>().mutex); }

std::string who_waits(CallContext& context) { return context.debug_info().at("rpc.waits"); }

// Has another one take the mutex that its caller holds, and stays until the server says so.
void until_another_waits(CallContext& context) {
  static_cast<void>(context.rpc_async("server", &takes));
  while (!contains(context.rpc_sync("server", &who_waits),
                   "takes waits for boost::fibers::mutex::lock(), held by asks_in_lock, for "))
    context.sleep(milliseconds(5));
}

void asks_in_lock(CallContext& context) {
  const std::lock_guard lock(context.state<Shared>().mutex);
  context.rpc_sync(context.caller_info().id, &until_another_waits);
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("waits_until", &waits_until).function("opens", &opens);
  registry.function("holds_for", &holds_for).function("spins", &spins);
  registry.function("pong", &pong)
      .function("waits", &waits)
      .function("wakes", &wakes)
      .function("numbers", &numbers);
  registry.function("echo", &echo).function("calls_in_lock", &calls_in_lock);
  registry.function("takes", &takes).function("asks_in_lock", &asks_in_lock);
  registry.function("who_waits", &who_waits);
  registry.function("until_another_waits", &until_another_waits);
  return registry;
}

Program program_of(int64_t kind, const Program::Main& caller) {
  Program program(functions());
  program.worker("caller", caller);
  program.worker("server").state<Shared>(kind);
  return program;
}

TEST(Primitives, OfEveryKindBlockTheirExecutionAloneAndAreWoken) {
  for (int64_t kind = 0; kind < kPrimitives; ++kind) {
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

TEST(Primitives, AWorkerTellsWhoWaitsForWhom) {
  in_both_worlds(program_of(0, [](Worker& worker) { worker.rpc_sync("server", &asks_in_lock); }));
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

// Goal: a wait ends when its worker does, whatever it waits in. Method: the server's main fails as
// soon as a function waits; a stack that is left would keep its node.
TEST(Primitives, OfEveryKindEndWithTheirWorker) {
  for (int64_t kind = 0; kind <= kBarrier; ++kind) {
    SCOPED_TRACE(kind);
    Program program(functions());
    program.worker("caller", [](Worker& worker) {
      EXPECT_EQ(kind_of([&] { worker.rpc_sync("server", &waits); }), ErrorKind::peer_lost);
    });
    const auto fails = [](Worker& worker) {
      while (worker.state<Shared>().waiting == 0) worker.sleep(milliseconds(1));
      throw std::runtime_error("enough");
    };
    program.worker("server", fails).state<Shared>(kind);
    sim::Cluster cluster(Seed{1}, program);
    const sim::RunReport& report = cluster.try_run();
    ASSERT_TRUE(report.failure);
    EXPECT_EQ(report.failure->oracle, "main");
    EXPECT_TRUE(contains(report.failure->message, "enough")) << report.failure->message;
    for (const uint32_t threads : {2, 0}) {
      real::LoopbackGroup group(program, {.worker_threads = threads});
      const std::vector<Status> ends = group.run();
      ASSERT_FALSE(ends[1].ok());
      EXPECT_TRUE(contains(to_string(ends[1].error()), "enough"));
    }
  }
}

TEST(Primitives, AMainWaitsInThemToo) {
  Program program(functions());
  program.worker("caller", [](Worker& worker) {
    worker.sleep(milliseconds(5));
    worker.rpc_sync("server", &opens);
  });
  const auto waits = [](Worker& worker) {
    Shared& shared = worker.state<Shared>();
    std::unique_lock lock(shared.mutex);
    shared.changed.wait(lock, [&shared] { return shared.open.load(); });
  };
  program.worker("server", waits).state<Shared>(int64_t{0});
  in_both_worlds(program);
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
