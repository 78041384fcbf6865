// Goal: what a function has taken at another worker it gives back, whatever becomes of its call.
// Method: a lock at one worker, taken by a function at a second, which a third calls and gives up
// in every way; in the simulator with its death, too.
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "core/api/batcher.h"
#include "tests/reference/row.h"

namespace rehearsal::reference::clean_up_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Lock {
 public:
  Lock() = default;
  void take() { ++taken_; }
  void give() { --taken_; }
  int64_t taken() const { return taken_; }

 private:
  int64_t taken_ = 0;
};

// How the lock is given back.
enum class Way : uint8_t { by_context, by_reference, without_waiting, in_a_batch };
constexpr std::array kWays = {Way::by_context, Way::by_reference, Way::without_waiting,
                              Way::in_a_batch};

// As users write it: it lets out whatever the call throws.
class Guard {
 public:
  Guard(CallContext& context, const RRef<Lock>& lock, Way way)
      : context_(context), lock_(lock), way_(way) {
    const Shield shield = context_.shielded(seconds(30));
    context_.rpc_sync(lock_, &Lock::take);
  }
  ~Guard() {
    const Shield shield = context_.shielded(seconds(30));
    switch (way_) {
      case Way::by_context:
        context_.rpc_sync(lock_, &Lock::give);
        break;
      case Way::by_reference:
        lock_.rpc_sync(&Lock::give);
        break;
      case Way::without_waiting:
        static_cast<void>(lock_.rpc_async(&Lock::give));
        break;
      case Way::in_a_batch: {
        const Batcher<int64_t, int64_t> batcher(context_, {.size = 1},
                                                [lock = lock_](const std::vector<int64_t>& items) {
                                                  lock.rpc_sync(&Lock::give);
                                                  return items;
                                                });
        static_cast<void>(batcher.add(1).wait());
        break;
      }
    }
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  CallContext& context_;
  const RRef<Lock> lock_;
  const Way way_;
};

struct Work {
  Way way{};
  bool throws = false;
  friend void describe(Work& work, auto&& fields) { fields(work.way, work.throws); }
};

// Until whoever waits for it has given up.
void outlast(CallContext& context) {
  while (!context.cancelled()) context.sleep(milliseconds(1));
}

int64_t work(CallContext& context, const RRef<Lock>& lock, const Work& how) {
  const Guard guard(context, lock, how.way);
  outlast(context);
  if (how.throws) throw std::runtime_error("in the middle of its work");
  return 1;
}

void work_in_stream(CallContext& context, StreamWriter<int64_t>& out, const RRef<Lock>& lock,
                    const Work& how) {
  const Guard guard(context, lock, how.way);
  out.write(1);
  outlast(context);
  if (how.throws) throw std::runtime_error("in the middle of its work");
}

// Its call ends by an error that it does not expect, and its guard asks for no shield.
struct PlainGuard {
  PlainGuard(CallContext& context, const RRef<Lock>& lock) : lock(lock) {
    const Shield shield = context.shielded(seconds(30));
    lock.rpc_sync(&Lock::take);
  }
  ~PlainGuard() { lock.rpc_sync(&Lock::give); }
  const RRef<Lock> lock;
};
Future<int64_t> never(CallContext& context) {
  static_cast<void>(context);
  return context.after(std::chrono::hours(1000)).then([](Unit) { return int64_t{0}; });
}
int64_t be_cut_off(CallContext& context, const RRef<Lock>& lock) {
  const PlainGuard guard(context, lock);
  return context.with_timeout(Timeout::never()).rpc_sync("locker", &never);
}

int64_t one() { return 1; }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("work", &work).function("work_in_stream", &work_in_stream);
  registry.function("be_cut_off", &be_cut_off).function("never", &never).function("one", &one);
  registry.type<Lock>("Lock")
      .constructor<>()
      .method("take", &Lock::take)
      .method("give", &Lock::give)
      .method("taken", &Lock::taken);
  return registry;
}

void await_taken(const Worker& worker, const RRef<Lock>& lock, int64_t taken) {
  for (int looks = 0; lock.rpc_sync(&Lock::taken) != taken; ++looks) {
    if (looks == 6000) throw std::logic_error("the lock stays as it is");
    worker.sleep(milliseconds(10));
  }
}

// Three workers, of which the first gives up what it has called.
Program giving_up(const std::function<void(Worker&, const RRef<Lock>&)>& body) {
  Program program(functions());
  program.worker("trainer", [body](Worker& worker) {
    const RRef<Lock> lock = worker.remote<Lock>("locker");
    body(worker, lock);
    await_taken(worker, lock, 0);
    EXPECT_EQ(worker.rpc_sync("ps", &one), 1);
  });
  program.worker("ps").worker("locker");
  return program;
}

void for_all_work(const std::function<void(const Work&)>& body) {
  for (const Way way : kWays)
    for (const bool throws : {false, true}) body({way, throws});
}

TEST(CleanUp, RunsWhenTheTimeOfTheCallIsOver) {
  in_both_worlds(giving_up([](Worker& worker, const RRef<Lock>& lock) {
    for_all_work([&](const Work& how) {
      const Calls hurried = worker.with_timeout(milliseconds(50));
      EXPECT_EQ(kind_of([&] { hurried.rpc_sync("ps", &work, lock, how); }), ErrorKind::timeout);
      await_taken(worker, lock, 0);
    });
  }));
}

TEST(CleanUp, RunsWhenTheCallerCancels) {
  in_both_worlds(giving_up([](Worker& worker, const RRef<Lock>& lock) {
    for_all_work([&](const Work& how) {
      const Future<int64_t> given_up = worker.rpc_async("ps", &work, lock, how);
      await_taken(worker, lock, 1);
      given_up.cancel();
      EXPECT_EQ(kind_of([&] { given_up.wait(); }), ErrorKind::cancelled);
      await_taken(worker, lock, 0);
    });
  }));
}

TEST(CleanUp, RunsWhenTheReaderDropsTheStream) {
  in_both_worlds(giving_up([](Worker& worker, const RRef<Lock>& lock) {
    for_all_work([&](const Work& how) {
      {
        Stream<int64_t> stream = worker.rpc_stream("ps", &work_in_stream, lock, how);
        EXPECT_EQ(stream.next(), 1);
      }
      await_taken(worker, lock, 0);
    });
  }));
}

TEST(CleanUp, RunsUnaskedWhileAnExceptionLeavesTheFunction) {
  in_both_worlds(giving_up([](Worker& worker, const RRef<Lock>& lock) {
    const Future<int64_t> given_up = worker.rpc_async("ps", &be_cut_off, lock);
    await_taken(worker, lock, 1);
    given_up.cancel();
    EXPECT_EQ(kind_of([&] { given_up.wait(); }), ErrorKind::cancelled);
  }));
}

TEST(CleanUp, OfARecordedCallIsNotRecorded) {
  // Goal: neither is it refused since its autograd context has ended. Method: that ends first.
  in_both_worlds(giving_up([](Worker& worker, const RRef<Lock>& lock) {
    for_all_work([&](const Work& how) {
      {
        const AutogradContext context(worker);
        const Future<int64_t> given_up = context.rpc_async("ps", &work, lock, how);
        await_taken(worker, lock, 1);
        given_up.cancel();
      }
      await_taken(worker, lock, 0);
    });
  }));
}

// The caller dies in the middle; a fourth worker looks at the lock, and says when it is held.
Program dying_caller(const Work& how, bool& is_held) {
  is_held = false;
  Program program(functions());
  program.worker("trainer", [how](Worker& worker) {
    const RRef<Lock> lock = worker.lookup<Lock>("locker", "lock");
    worker.with_timeout(Timeout::never()).rpc_sync("ps", &work, lock, how);
  });
  program.worker("ps");
  program.worker("locker", [&is_held](Worker& worker) {
    const RRef<Lock> lock = worker.rref(Lock());
    worker.publish("lock", lock);
    await_taken(worker, lock, 1);
    is_held = true;
    await_taken(worker, lock, 0);
    EXPECT_EQ(worker.rpc_sync("ps", &one), 1);
    worker.unpublish("lock");
  });
  return program;
}

// A link may take longer than others to be there.
void crash_when_held(sim::Cluster& cluster, const bool& is_held, seconds now) {
  cluster.at(now, [&cluster, &is_held, now] {
    if (is_held)
      cluster.crash("trainer");
    else
      crash_when_held(cluster, is_held, now + seconds(1));
  });
}

TEST(CleanUp, RunsWhenTheCallerDies) {
  for_all_work([](const Work& how) {
    bool is_held = false;
    on_simulated_clusters([&] { return dying_caller(how, is_held); },
                          {.seeds = tries(8), .adjust_cluster = [&](sim::Cluster& cluster) {
                             crash_when_held(cluster, is_held, seconds(5));
                           }});
  });
}

// Functions that have begun to work.
class Works final : public Trace {
 public:
  void on_event(const Event& event) override {
    begun += event.kind == EventKind::call_executed && event.text == "work" ? 1 : 0;
  }
  uint64_t begun = 0;
};

TEST(CleanUp, OfAWorkerThatDiesHarmsNobodyElse) {
  // Goal: a stack that unwinds since its simulated worker was killed meets guards whose calls can
  // have no answer; a process that is killed runs none of them. Method: the serving worker dies in
  // the middle, while the function waits, and while it gives back.
  const Program program = giving_up([](Worker& worker, const RRef<Lock>& lock) {
    for_all_work([&](const Work& how) {
      const Future<int64_t> given_up = worker.rpc_async("ps", &work, lock, how);
      worker.sleep(milliseconds(3));
      given_up.cancel();
      worker.sleep(milliseconds(3));
    });
  });
  uint64_t crashes = 0;
  for (uint64_t seed = 1; seed <= tries(60); ++seed) {
    Works works;
    sim::ClusterOptions options{.faults = sim::FaultLevel::hostile};
    options.traces.push_back(&works);
    sim::Cluster cluster(Seed{seed}, program, options);
    // A call that is given up before it arrives does not begin.
    if (!cluster.run_until([&] { return works.begun > seed % 4; })) continue;
    ++crashes;
    cluster.advance(std::chrono::microseconds(seed * 97 % 7000));
    cluster.crash("ps");
    const sim::RunReport& report = cluster.try_run();
    // The main finds its worker lost; nothing else may go wrong.
    ASSERT_TRUE(report.ok || report.failure->oracle == "main") << describe_failure(report);
  }
  EXPECT_GT(crashes, tries(60) / 4);
}

}  // namespace
}  // namespace rehearsal::reference::clean_up_test
