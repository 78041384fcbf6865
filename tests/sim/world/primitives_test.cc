#include <gtest/gtest.h>

#include <algorithm>
#include <boost/fiber/all.hpp>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "tests/effort.h"

// Boost.Fiber's primitives under a simulated worker's executions. In both worlds they are tested by
// tests/reference/primitives_test.cc.
namespace rehearsal::sim {
namespace {

namespace bf = boost::fibers;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The code of a worker's executions, by name; it may use the variables of its test.
using Parts = std::map<std::string, std::function<void(CallContext&)>>;

struct Script {
  explicit Script(const Parts* parts) : parts(parts) {}
  const Parts* parts;
};

void play(CallContext& context, const std::string& part) {
  context.state<Script>().parts->at(part)(context);
}

// A worker that plays parts, and one that has them played.
Program playing(const Parts& parts, const Program::Main& main) {
  FunctionRegistry registry;
  registry.function("play", &play);
  Program program(std::move(registry));
  program.worker("server").state<Script>(&parts);
  program.worker("client", main);
  return program;
}

ClusterOptions calm() { return {.faults = FaultLevel::none, .restart = Restart::never}; }

// Counts those of its kind that live.
struct Guest {
  explicit Guest(int& alive) : alive(alive) { ++alive; }
  ~Guest() { --alive; }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  int& alive;
};

// Runs until the server's executions wait as they should, then crashes it. So many of their stacks
// could not unwind.
uint64_t crash_server(const Program& program, const std::function<bool(const WaitViews&)>& wait) {
  Cluster cluster(Seed{1}, program, calm());
  EXPECT_TRUE(cluster.run_until([&] { return wait(cluster.node("server").waits()); }));
  cluster.crash("server");
  return cluster.try_run().stacks_left;
}

auto so_many(uint64_t count) {
  return [count](const WaitViews& waits) { return waits.stacks.size() == count; };
}

bool two_take_a_mutex(const WaitViews& waits) {
  return std::count_if(waits.stacks.begin(), waits.stacks.end(), [](const auto& stack) {
           return stack.what == "boost::fibers::mutex::lock(), held by play";
         }) == 2;
}

// ---- orders ----------------------------------------------------------------------

TEST(Primitives, WhoIsWokenGoesOnInAnyOrderAndASeedRepeatsIt) {
  std::string order;
  bf::mutex mutex;
  bf::condition_variable all;
  bool open = false;
  Parts parts;
  for (const std::string name : {"a", "b", "c", "d"})
    parts[name] = [&, name](CallContext&) {
      std::unique_lock lock(mutex);
      all.wait(lock, [&] { return open; });
      order += name;
    };
  parts["opens"] = [&](CallContext&) {
    const std::lock_guard lock(mutex);
    open = true;
    all.notify_all();
  };
  const Program program = playing(parts, [](Worker& worker) {
    std::vector<Future<Unit>> ends;
    for (const std::string name : {"a", "b", "c", "d"})
      ends.push_back(worker.rpc_async("server", &play, name));
    worker.sleep(seconds(1));
    worker.rpc_sync("server", &play, std::string("opens"));
    for (const Future<Unit>& end : ends) end.wait();
  });
  const auto run = [&](uint64_t seed) {
    order.clear();
    open = false;
    Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::mild});
    return cluster.run().fingerprint + order;
  };
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= tries(60); ++seed) {
    const std::string first = run(seed);
    orders.insert(order);
    EXPECT_EQ(first, run(seed));
  }
  EXPECT_GT(orders.size(), tries(60) / 6);
}

// ---- crashes ---------------------------------------------------------------------

TEST(Primitives, ACrashUnwindsWhatWaitsInThem) {
  int alive = 0;
  bf::mutex mutex;
  bf::mutex other;
  bf::condition_variable never;
  bf::buffered_channel<int> empty(2);
  bf::buffered_channel<int> full(2);
  ASSERT_EQ(full.try_push(1), bf::channel_op_status::success);
  bf::promise<int> promise;
  bf::shared_future<int> future = promise.get_future().share();
  bf::barrier barrier(9);
  Parts parts;
  const auto add = [&](const std::string& name, auto waits) {
    parts[name] = [&alive, waits](CallContext& context) {
      const Guest guest(alive);
      waits(context);
      ADD_FAILURE() << "code of a dead worker went on";
    };
  };
  add("holds", [&](CallContext& context) {
    const std::lock_guard lock(mutex);
    context.sleep(seconds(100));
  });
  add("locks", [&](CallContext&) { const std::lock_guard lock(mutex); });
  add("waits", [&](CallContext&) {
    std::unique_lock lock(other);
    never.wait(lock, [] { return false; });
  });
  add("pops", [&](CallContext&) { static_cast<void>(empty.value_pop()); });
  add("pushes", [&](CallContext&) { full.push(2); });
  add("gets", [&](CallContext&) { static_cast<void>(future.get()); });
  add("meets", [&](CallContext&) { barrier.wait(); });
  const Program program = playing(parts, [&parts](Worker& worker) {
    std::vector<Future<Unit>> ends = {worker.rpc_async("server", &play, std::string("holds"))};
    worker.sleep(seconds(1));
    for (const auto& [name, part] : parts)
      if (name != "holds")
        for (int i = 0; i < 2; ++i) ends.push_back(worker.rpc_async("server", &play, name));
    for (const Future<Unit>& end : ends) end.wait();
  });
  EXPECT_EQ(crash_server(program, so_many(2 * parts.size())), 0u);
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(other.try_lock());
  other.unlock();
  EXPECT_EQ(full.try_push(3), bf::channel_op_status::full);
}

// Method: the destructor of one dying execution wants what another one has, which dies behind it.
TEST(Primitives, ADestructorWaitsForTheOtherStacksThatUnwind) {
  int alive = 0;
  bool cleaned = false;
  bf::mutex mutex;
  struct Cleaner {
    ~Cleaner() {
      const std::lock_guard lock(mutex);
      cleaned = true;
    }
    bf::mutex& mutex;
    bool& cleaned;
  };
  Parts parts;
  parts["cleans"] = [&](CallContext& context) {
    const Guest guest(alive);
    const Cleaner cleaner{mutex, cleaned};
    context.sleep(seconds(100));
  };
  parts["holds"] = [&](CallContext& context) {
    const Guest guest(alive);
    const std::lock_guard lock(mutex);
    context.sleep(seconds(100));
  };
  const Program program = playing(parts, [](Worker& worker) {
    const auto first = worker.rpc_async("server", &play, std::string("cleans"));
    worker.sleep(seconds(1));
    worker.rpc_sync("server", &play, std::string("holds"));
    first.wait();
  });
  EXPECT_EQ(crash_server(program, so_many(3)), 0u);
  EXPECT_TRUE(cleaned);
  EXPECT_EQ(alive, 0);
}

// Goal: code of a dead worker does not go on where no exception can leave its wait, and nobody
// finds it in the mutex later. Method: it has been woken from its condition, and takes the lock
// back, which another one holds when all die, behind a third.
TEST(Primitives, AConditionThatTakesItsLockBackIsLeftByACrash) {
  bool went_on = false;
  bf::mutex mutex;
  bf::condition_variable condition;
  Parts parts;
  parts["waits"] = [&](CallContext&) {
    std::unique_lock lock(mutex);
    condition.wait(lock);
    went_on = true;
  };
  parts["locks"] = [&](CallContext&) { const std::lock_guard lock(mutex); };
  parts["wakes"] = [&](CallContext& context) {
    const std::lock_guard lock(mutex);
    context.sleep(seconds(2));
    condition.notify_one();
    context.sleep(seconds(100));
  };
  const Program program = playing(parts, [](Worker& worker) {
    std::vector<Future<Unit>> ends;
    for (const std::string part : {"waits", "wakes", "locks"}) {
      ends.push_back(worker.rpc_async("server", &play, part));
      worker.sleep(seconds(1));
    }
    for (const Future<Unit>& end : ends) end.wait();
  });
  EXPECT_EQ(crash_server(program, two_take_a_mutex), 1u);
  EXPECT_FALSE(went_on);
}

// Goal: a stack that is left does not go on later. Method: it has got its lock back, and its worker
// crashes before it goes on.
TEST(Primitives, OneThatHasItsLockBackButDidNotGoOnIsLeftByACrash) {
  bf::mutex mutex;
  bf::condition_variable condition;
  bool let_go = false;
  bool went_on = false;
  Parts parts;
  parts["waits"] = [&](CallContext&) {
    std::unique_lock lock(mutex);
    condition.wait(lock);
    went_on = true;
  };
  parts["wakes"] = [&](CallContext& context) {
    std::unique_lock lock(mutex);
    condition.notify_one();
    context.sleep(seconds(1));
    lock.unlock();
    let_go = true;
  };
  const Program program = playing(parts, [](Worker& worker) {
    const auto first = worker.rpc_async("server", &play, std::string("waits"));
    worker.sleep(seconds(1));
    worker.rpc_sync("server", &play, std::string("wakes"));
    first.wait();
  });
  EXPECT_EQ(crash_server(program, [&let_go](const WaitViews&) { return let_go; }), 1u);
  EXPECT_FALSE(went_on);
}

// Goal: only a loop that does nothing else gives way for longer and longer. Method: code that waits
// between two times takes as long for the second hundred as for the first.
TEST(Primitives, WhoGivesWayNowAndThenLosesNoTime) {
  std::vector<Duration> times;
  Parts parts;
  parts["works"] = [&times](CallContext& context) {
    for (int hundred = 0; hundred < 2; ++hundred) {
      const Instant begun = context.now();
      for (int i = 0; i < 100; ++i) {
        boost::this_fiber::yield();
        context.sleep(milliseconds(1));
      }
      times.push_back(context.now() - begun);
    }
  };
  const Program program = playing(
      parts, [](Worker& worker) { worker.rpc_sync("server", &play, std::string("works")); });
  Cluster(Seed{1}, program, calm()).run();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_LT(times[1], times[0] + milliseconds(5));
}

// Goal: code of a dead worker does not go on in a loop that no exception can leave. Method: one
// that gives way and does nothing else.
TEST(Primitives, ALoopThatOnlyGivesWayIsLeftByACrash) {
  uint64_t turns = 0;
  Parts parts;
  parts["spins"] = [&turns](CallContext&) {
    for (;;) {
      ++turns;
      boost::this_fiber::yield();
    }
  };
  const Program program = playing(
      parts, [](Worker& worker) { worker.rpc_sync("server", &play, std::string("spins")); });
  uint64_t at_crash = 0;
  EXPECT_EQ(crash_server(program,
                         [&](const WaitViews&) {
                           at_crash = turns;
                           return turns == 100;
                         }),
            1u);
  EXPECT_LE(turns, at_crash + 1);
}

// ---- what a run tells ----------------------------------------------------------------

// The oracle that a run fails by, and what it says.
std::string told(const Program& program) {
  Cluster cluster(Seed{1}, program, calm());
  const RunReport& report = cluster.try_run();
  return report.failure ? report.failure->oracle + ": " + report.failure->message : "nothing";
}

template <class Mutex>
std::string told_of_deadlock() {
  Mutex one;
  Mutex two;
  Parts parts;
  const auto locks = [](Mutex& first, Mutex& second) {
    return [&](CallContext& context) {
      const std::lock_guard outer(first);
      context.sleep(seconds(1));
      const std::lock_guard inner(second);
    };
  };
  parts["one, two"] = locks(one, two);
  parts["two, one"] = locks(two, one);
  const Program program = playing(parts, [](Worker& worker) {
    const Calls endless = worker.with_timeout(Timeout::never());
    const auto first = endless.rpc_async("server", &play, std::string("one, two"));
    endless.rpc_sync("server", &play, std::string("two, one"));
    first.wait();
  });
  return told(program);
}

TEST(Primitives, ADeadlockIsToldWithWhoHoldsWhatAsACycle) {
  for (const std::string& told :
       {told_of_deadlock<bf::mutex>(), told_of_deadlock<bf::recursive_mutex>(),
        told_of_deadlock<bf::timed_mutex>(), told_of_deadlock<bf::recursive_timed_mutex>()}) {
    EXPECT_EQ(told.find("deadlock: play at server waits for play at server waits for play at "
                        "server; no code of the program can end this"),
              0u)
        << told;
    EXPECT_NE(told.find("play waits for boost::fibers::"), std::string::npos) << told;
    EXPECT_NE(told.find("mutex::lock(), held by play"), std::string::npos) << told;
    EXPECT_NE(told.find("a cycle: play at server -> play at server -> play at server"),
              std::string::npos)
        << told;
  }
}

// One function holds a mutex, and calls another one, which takes it.
Program locked_across_calls(Parts& parts, bf::timed_mutex& mutex, Timeout timeout) {
  parts["holds"] = [&mutex, timeout](CallContext& context) {
    const std::lock_guard lock(mutex);
    try {
      context.with_timeout(timeout).rpc_sync("server", &play, std::string("takes"));
    } catch (const RpcError& error) {
      if (error.error().kind != ErrorKind::timeout) throw;
    }
  };
  return playing(parts,
                 [](Worker& worker) { worker.rpc_sync("server", &play, std::string("holds")); });
}

TEST(Primitives, ADeadlockIsToldBeforeACallTimesOut) {
  // Goal: not "timeout", which says nothing of who holds what. Method: calls with the default time,
  // which is a minute.
  bf::timed_mutex mutex;
  Parts parts = {{"takes", [&](CallContext&) { const std::lock_guard lock(mutex); }}};
  const std::string told_now = told(locked_across_calls(parts, mutex, {}));
  EXPECT_EQ(told_now.find("deadlock: play at server waits for play at server waits for play at"),
            0u)
      << told_now;
  EXPECT_NE(told_now.find("timed_mutex::lock(), held by play, for "), std::string::npos)
      << told_now;
}

TEST(Primitives, NoneIsToldThatTheProgramEndsByItself) {
  // Goal: no false alarm. Method: a call with a short time, and a lock that is tried for a while.
  bf::timed_mutex mutex;
  Parts parts = {{"takes", [&](CallContext&) { const std::lock_guard lock(mutex); }}};
  EXPECT_EQ(told(locked_across_calls(parts, mutex, seconds(3))), "nothing");
  parts["takes"] = [&](CallContext& context) {
    const Instant until = context.now() + seconds(30);
    EXPECT_FALSE(
        mutex.try_lock_until(std::chrono::steady_clock::time_point(until.time_since_epoch())));
  };
  EXPECT_EQ(told(locked_across_calls(parts, mutex, {})), "nothing");
}

// ---- what is refused -------------------------------------------------------------------

// Runs the part alone.
void run_part(const std::function<void(CallContext&)>& part) {
  const Parts parts = {{"part", part}};
  const Program program =
      playing(parts, [](Worker& worker) { worker.rpc_sync("server", &play, std::string("part")); });
  Cluster(Seed{1}, program, calm()).run();
}

using PrimitivesDeathTest = ::testing::Test;

TEST(PrimitivesDeathTest, WhatCannotBeDoneIsRefusedByName) {
  EXPECT_DEATH(run_part([](CallContext&) { bf::fiber([] {}).join(); }),
               "'play' uses boost::fibers::fiber: nobody would see it run");
  EXPECT_DEATH(
      run_part([](CallContext&) { bf::fiber(bf::launch::dispatch, [] { std::_Exit(0); }).join(); }),
      "'play' uses boost::fibers::fiber: nobody would see it run");
  EXPECT_DEATH(run_part([](CallContext& context) {
                 boost::this_fiber::sleep_until(std::chrono::steady_clock::time_point(
                     (context.now() + seconds(1)).time_since_epoch()));
               }),
               "'play' uses boost::this_fiber::sleep_until: wait with worker.sleep instead");
  EXPECT_DEATH(run_part([](CallContext&) { bf::unbuffered_channel<int>().push(1); }),
               "'play' uses boost::fibers::unbuffered_channel::push: no error can end its wait");
  EXPECT_DEATH(run_part([](CallContext&) { bf::fiber_specific_ptr<int>().reset(new int(1)); }),
               "'play' uses boost::fibers::fiber_specific_ptr: keep the value in a variable");
  EXPECT_DEATH(run_part([](CallContext&) { boost::this_fiber::sleep_for(seconds(1)); }),
               "simulated code called std::chrono::steady_clock::now");
}

TEST(PrimitivesDeathTest, TwoWorkersShareNone) {
  bf::promise<int> promise;
  bf::shared_future<int> future = promise.get_future().share();
  const Parts parts = {{"gets", [&](CallContext&) { future.wait(); }}};
  const Program program = playing(parts, [&](Worker& worker) {
    const auto end = worker.rpc_async("server", &play, std::string("gets"));
    worker.sleep(seconds(1));
    promise.set_value(7);
    end.wait();
  });
  EXPECT_DEATH(Cluster(Seed{1}, program, calm()).run(),
               "'client' uses a primitive of Boost.Fiber in which code of worker 'server' waits: "
               "workers share no memory");
}

TEST(Primitives, AContinuationIsToldThatItMayNotWait) {
  std::string told;
  bool tried = false;
  bf::mutex mutex;
  bf::mutex free;
  run_part([&](CallContext& context) {
    mutex.lock();
    Promise<int64_t> promise = context.promise<int64_t>();
    const auto after = promise.future().then([&](int64_t) {
      try {
        bf::promise<int>().get_future().wait();
      } catch (const RpcError& error) {
        told = error.error().text;
      }
      tried = free.try_lock();
      if (tried) free.unlock();
    });
    promise.complete(1);
    after.wait();
    mutex.unlock();
  });
  EXPECT_NE(told.find("this code runs to its end"), std::string::npos) << told;
  EXPECT_TRUE(tried);
}

}  // namespace
}  // namespace rehearsal::sim
