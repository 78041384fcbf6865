// Goal: what a worker holds may call when it dies, as any code of its worker. Method: sessions that
// give back what they have taken at a third worker, in every way and at every end.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::destructors_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The slots that were still taken when their keeper died, of all keepers that died.
std::atomic<int64_t> never_given{0};
std::atomic<int64_t> slots_ended{0};

class Slots {
 public:
  Slots() = default;
  Slots(Slots&&) = default;
  Slots& operator=(Slots&&) = default;
  ~Slots() {
    never_given += taken_;
    ++slots_ended;
  }
  void take() { ++taken_; }
  void give() { --taken_; }
  void give_slowly(CallContext& context) {
    context.sleep(seconds(1));
    --taken_;
  }
  void refuse() const { throw std::runtime_error("nothing is taken back today"); }
  int64_t taken() const { return taken_; }

 private:
  int64_t taken_ = 0;
};

enum class Way : uint8_t { waits, calls, waits_long, throws };
struct How {
  Way way{};
  friend void describe(How& how, auto&& fields) { fields(how.way); }
};
constexpr std::array kGivingBack = {Way::waits, Way::calls, Way::waits_long};

class Session {
 public:
  Session(const RRef<Slots>& slots, const How& how) : slots_(slots), way_(how.way) {
    slots_.rpc_sync(&Slots::take);
  }
  Session(Session&&) noexcept = default;
  Session& operator=(Session&&) = delete;
  ~Session() {
    if (!slots_.valid()) return;
    if (way_ == Way::waits) slots_.rpc_sync(&Slots::give);
    if (way_ == Way::calls) static_cast<void>(slots_.rpc_async(&Slots::give));
    if (way_ == Way::waits_long) slots_.rpc_sync(&Slots::give_slowly);
    if (way_ == Way::throws) slots_.rpc_sync(&Slots::refuse);
  }

 private:
  RRef<Slots> slots_;
  Way way_;
};

int64_t one() { return 1; }
int64_t fail() { throw std::runtime_error("as it does always"); }
int64_t sleep_a_while(CallContext& context) {
  context.sleep(seconds(2));
  return 1;
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("one", &one).function("fail", &fail).function("sleep_a_while", &sleep_a_while);
  registry.type<Slots>("Slots")
      .constructor<>()
      .method("take", &Slots::take)
      .method("give", &Slots::give)
      .method("give_slowly", &Slots::give_slowly)
      .method("refuse", &Slots::refuse)
      .method("taken", &Slots::taken);
  registry.type<Session>("Session").constructor<const RRef<Slots>&, const How&>();
  return registry;
}

void await_taken(const Worker& worker, const RRef<Slots>& slots, int64_t taken) {
  for (int looks = 0; slots.rpc_sync(&Slots::taken) != taken; ++looks) {
    if (looks == 6000) throw std::logic_error("the slots stay as they are");
    worker.sleep(milliseconds(10));
  }
}

// Sessions live at 'ps', the slots at 'keeper'.
Program sessions(const Program::Main& trainer) {
  Program program(functions());
  program.worker("trainer", trainer).worker("ps").worker("keeper");
  return program;
}

TEST(Destructors, OfOwnedValuesMayCallAndWait) {
  in_both_worlds(sessions([](Worker& worker) {
                   const RRef<Slots> slots = worker.remote<Slots>("keeper");
                   for (const Way way : kGivingBack) {
                     {
                       const RRef<Session> session = worker.remote<Session>("ps", slots, How{way});
                       await_taken(worker, slots, 1);
                     }
                     await_taken(worker, slots, 0);
                     EXPECT_EQ(worker.rpc_sync("ps", &one), 1);
                   }
                 }),
                 {.seeds = tries(10)});
}

TEST(Destructors, AreWaitedForByTheShutdown) {
  // Method: the last reference dies as the last main ends. The slots die after all of their users.
  for (const Way way : kGivingBack) {
    never_given = 0;
    slots_ended = 0;
    in_both_worlds(sessions([way](Worker& worker) {
                     const RRef<Slots> slots = worker.remote<Slots>("keeper");
                     const RRef<Session> session = worker.remote<Session>("ps", slots, How{way});
                     await_taken(worker, slots, 1);
                   }),
                   {.seeds = tries(10)});
    EXPECT_EQ(never_given, 0);
    EXPECT_GT(slots_ended, 0);
  }
}

TEST(Destructors, OfContinuationsMayCallAndWait) {
  // Method: one that runs, one that is skipped, one whose call is given up, and one whose promise
  // is dropped.
  in_both_worlds(
      sessions([](Worker& worker) {
        const RRef<Slots> slots = worker.remote<Slots>("keeper");
        for (const Way way : kGivingBack) {
          int64_t ran = 0;
          const auto hold = [&](const Future<int64_t>& answer) {
            return answer.then([&ran, session = Session(slots, How{way})](int64_t) { ++ran; });
          };
          hold(worker.rpc_async("ps", &one)).wait();
          EXPECT_EQ(ran, 1);
          EXPECT_FALSE(hold(worker.rpc_async("ps", &fail)).result().ok());
          hold(worker.rpc_async("ps", &sleep_a_while)).cancel();
          hold(worker.promise<int64_t>().future());
          EXPECT_EQ(ran, 1);
          await_taken(worker, slots, 0);
        }
      }),
      {.seeds = tries(10)});
}

TEST(Destructors, AContinuationItselfStillMayNotWait) {
  in_both_worlds(
      sessions([](Worker& worker) {
        const RRef<Slots> slots = worker.remote<Slots>("keeper");
        const Future<int64_t> waiting =
            worker.rpc_async("ps", &one).then([&worker, session = Session(slots, How{})](int64_t) {
              return worker.rpc_sync("ps", &one);
            });
        const Result<int64_t> result = waiting.result();
        ASSERT_FALSE(result.ok());
        EXPECT_EQ(result.error().kind, ErrorKind::would_park);
        await_taken(worker, slots, 0);
      }),
      {.seeds = tries(10)});
}

// States that end in turn, of which the second one to end throws.
std::atomic<int> states_ended{0};
struct Till {
  ~Till() { ++states_ended; }
};
struct Desk {
  Desk() = default;
  Desk(const Desk&) = delete;
  ~Desk() noexcept(false) {
    ++states_ended;
    throw std::runtime_error("the desk stays");
  }
};

Program with_states() {
  Program program(functions());
  program.worker("trainer", [](Worker& worker) { EXPECT_EQ(worker.rpc_sync("ps", &one), 1); });
  program.worker("ps").state<Till>().state<Desk>();
  return program;
}

TEST(Destructors, AStateThatThrowsIsToldAndTheOthersEnd) {
  states_ended = 0;
  const Program program = with_states();
  sim::Cluster cluster(Seed{1}, program, {.oracles = false});
  const sim::RunReport& report = cluster.try_run();
  ASSERT_FALSE(report.ok);
  EXPECT_TRUE(contains(report.failure->message, "the destructor of a Desk has let an exception"))
      << report.failure->message;
}

void lose_a_session(Worker& worker) {
  const RRef<Slots> slots = worker.remote<Slots>("keeper");
  {
    const RRef<Session> session = worker.remote<Session>("ps", slots, How{Way::throws});
    await_taken(worker, slots, 1);
  }
  worker.sleep(milliseconds(200));
  EXPECT_EQ(worker.rpc_sync("ps", &one), 1);
  EXPECT_EQ(slots.rpc_sync(&Slots::taken), 1);
}

TEST(Destructors, OneThatThrowsIsAFailureThatNamesItsType) {
  const Program program = sessions(&lose_a_session);
  sim::Cluster cluster(Seed{1}, program, {});
  const sim::RunReport& report = cluster.try_run();
  ASSERT_FALSE(report.ok);
  EXPECT_EQ(report.failure->oracle, "destructors");
  EXPECT_TRUE(contains(report.failure->message, "the destructor of a Session has let an exception"))
      << report.failure->message;
  EXPECT_TRUE(contains(report.failure->message, "nothing is taken back today"))
      << report.failure->message;
}

// Of all workers of a group: their threads share it.
class Failures final : public Trace {
 public:
  void on_event(const Event& event) override {
    if (event.kind != EventKind::destructor_failed) return;
    const std::lock_guard lock(mutex_);
    all.push_back(std::to_string(event.worker.value) + " " + std::string(event.text) + ": " +
                  std::string(event.value));
  }
  std::vector<std::string> all;

 private:
  std::mutex mutex_;
};

TEST(Destructors, OneThatThrowsEndsNothingElseOverTcp) {
  for (const uint32_t threads : {2, 1, 0}) {
    Failures failures;
    real::GroupOptions options{.worker_threads = threads};
    options.traces = {&failures, &failures, &failures};
    options.node.strict_leaks = false;  // The session's own reference is never let go.
    const Program program = sessions(&lose_a_session);
    real::LoopbackGroup group(program, options);
    for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
    ASSERT_EQ(failures.all.size(), 1U);
    EXPECT_TRUE(failures.all[0].starts_with("1 Session: ")) << failures.all[0];
    EXPECT_TRUE(contains(failures.all[0], "nothing is taken back today")) << failures.all[0];
  }
}

TEST(Destructors, AStateThatThrowsEndsNothingElseOverTcp) {
  states_ended = 0;
  Failures failures;
  real::GroupOptions options;
  options.traces = {&failures, &failures};
  const Program program = with_states();
  real::LoopbackGroup group(program, options);
  for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
  EXPECT_EQ(states_ended, 2);
  ASSERT_EQ(failures.all.size(), 1U);
  EXPECT_TRUE(failures.all[0].starts_with("1 Desk: ")) << failures.all[0];
}

TEST(Destructors, OfAWorkerThatDiesDoNotRun) {
  // Goal: a process that is killed runs none, and harms nobody. Method: 'ps' dies with sessions,
  // and while these die.
  const Program program = sessions([](Worker& worker) {
    const RRef<Slots> slots = worker.remote<Slots>("keeper");
    for (int round = 0; round < 4; ++round) {
      const RRef<Session> session =
          worker.remote<Session>("ps", slots, How{kGivingBack[round % 3]});
      await_taken(worker, slots, 1);
    }
  });
  for (uint64_t seed = 1; seed <= tries(60); ++seed) {
    sim::Cluster cluster(Seed{seed}, program, {.faults = sim::FaultLevel::hostile});
    cluster.at(milliseconds(seed * 7919 % 20'000), [&] { cluster.crash("ps"); });
    const sim::RunReport& report = cluster.try_run();
    ASSERT_TRUE(report.ok || report.failure->oracle == "main") << describe_failure(report);
  }
}

}  // namespace
}  // namespace rehearsal::reference::destructors_test
