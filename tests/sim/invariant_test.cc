// Invariants of a program over the values that its workers serve.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Account {
 public:
  explicit Account(int64_t balance) : balance_(balance) {}
  int64_t add(int64_t amount) { return balance_ += amount; }
  // Takes it, and gives it back after a while.
  int64_t lend(CallContext& context, int64_t amount) {
    balance_ -= amount;
    context.sleep(seconds(1));
    return balance_ += amount;
  }
  [[nodiscard]] int64_t balance() const { return balance_; }

 private:
  int64_t balance_;
};

// Two banks, and a client with an account of 10 at each: what `use` does with them.
using Use = std::function<void(Worker&, const RRef<Account>&, const RRef<Account>&)>;
Program banks(Use use) {
  FunctionRegistry registry;
  registry.type<Account>("Account")
      .constructor<int64_t>()
      .method("add", &Account::add)
      .method("lend", &Account::lend)
      .method("balance", &Account::balance);
  Program program(std::move(registry));
  program.worker(
      "bank", [](Worker&) {}, Count{2});
  program.worker("client", [use = std::move(use)](Worker& worker) {
    const auto one = worker.remote<Account>("bank0", 10);
    const auto other = worker.remote<Account>("bank1", 10);
    worker.wait_for_worker("bank1");
    use(worker, one, other);
  });
  return program;
}

// Overdraws the first account for a moment, and ends well.
void overdraw(Worker&, const RRef<Account>& one, const RRef<Account>& other) {
  one.rpc_sync(&Account::add, -15);
  other.rpc_sync(&Account::add, 15);
  one.rpc_sync(&Account::add, 15);
  other.rpc_sync(&Account::add, -15);
}

std::optional<std::string> never_negative(const Values& values) {
  for (const auto& account : values.of<Account>())
    if (account->balance() < 0)
      return "an account at " + std::string(account.worker) + " has " +
             std::to_string(account->balance());
  return std::nullopt;
}

TEST(Invariant, FailsTheRunAtTheStepThatBreaksIt) {
  // Goal: what is mended before the end is found all the same, by name. Method: an account that is
  // overdrawn for a moment; the same run without the invariant.
  const Program program = banks(overdraw);
  const ClusterOptions options{.faults = FaultLevel::none};
  Cluster whole(Seed{1}, program, options);
  const uint64_t decisions = whole.run().decisions;
  Cluster cluster(Seed{1}, program, options);
  cluster.add_invariant("never negative", never_negative);
  const RunReport& report = cluster.try_run();
  ASSERT_FALSE(report.ok);
  EXPECT_EQ(to_text(*report.failure), "never negative: the values: an account at bank0 has -5");
  EXPECT_LT(report.decisions, decisions / 2);
}

TEST(Invariant, LookingChangesNothing) {
  // Goal: the run is the same with it and without. Method: fingerprints under hostile faults.
  const Program program = banks([](Worker&, const RRef<Account>& one, const RRef<Account>& other) {
    for (int i = 0; i < 10; ++i) {
      one.rpc_sync(&Account::add, 1);
      other.rpc_sync(&Account::add, 1);
    }
  });
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const ClusterOptions options{.faults = FaultLevel::hostile};
    Cluster without(Seed{seed}, program, options);
    Cluster with(Seed{seed}, program, options);
    uint64_t judged = 0;
    with.add_invariant("counted", [&judged](const Values& values) -> std::optional<std::string> {
      judged += values.of<Account>().size();
      return std::nullopt;
    });
    EXPECT_EQ(with.run().fingerprint, without.run().fingerprint) << seed;
    EXPECT_GT(judged, 40u);
  }
}

TEST(Invariant, SeesEveryStateThatAnExecutionLeaves) {
  // Goal: no turn of the program's code is missed. Method: the states of one account, in order.
  std::vector<int64_t> states;
  const Program program = banks([](Worker&, const RRef<Account>& one, const RRef<Account>&) {
    for (int64_t i = 1; i <= 5; ++i) one.rpc_sync(&Account::add, i);
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.add_invariant("states", [&states](const Values& values) -> std::optional<std::string> {
    for (const auto& account : values.of<Account>("bank0"))
      if (states.empty() || states.back() != account->balance())
        states.push_back(account->balance());
    return std::nullopt;
  });
  cluster.run();
  EXPECT_EQ(states, (std::vector<int64_t>{10, 11, 13, 16, 20, 25}));
}

TEST(Invariant, IsToldOfAValueThatAMethodIsInTheMiddleOf) {
  // Goal: a state that nobody promises anything of is known as such. Method: a method that changes
  // its value, waits, and changes it back.
  const Program program = banks([](Worker&, const RRef<Account>& one, const RRef<Account>&) {
    one.rpc_sync(&Account::lend, 15);
  });
  const auto run_with = [&program](bool also_busy) {
    Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
    cluster.add_invariant("not negative",
                          [also_busy](const Values& values) -> std::optional<std::string> {
                            for (const auto& account : values.of<Account>("bank0"))
                              if (account->balance() < 0 && (also_busy || !account.busy))
                                return "it is";
                            return std::nullopt;
                          });
    return cluster.try_run().ok;
  };
  EXPECT_FALSE(run_with(true));
  EXPECT_TRUE(run_with(false));
}

TEST(Invariant, AValueIsThereFromItsConstructorToItsLastReferenceOrItsWorkersCrash) {
  // Goal: what of<T> gives. Method: how many accounts there are, before and after a crash.
  size_t most = 0;
  size_t after_crash = 99;
  bool has_crashed = false;
  const Program program = banks([](Worker& worker, const RRef<Account>&, const RRef<Account>&) {
    const auto local = worker.rref(Account(7));
    worker.sleep(seconds(1));
  });
  Cluster cluster(Seed{1}, program,
                  {.faults = FaultLevel::none,
                   .invariants = {{"count", [&](const Values& values) {
                                     const size_t count = values.of<Account>().size();
                                     most = std::max(most, count);
                                     if (has_crashed && values.now() < Instant(milliseconds(600)))
                                       after_crash = count;
                                     EXPECT_TRUE(values.of<int64_t>().empty());
                                     return std::optional<std::string>();
                                   }}}});
  cluster.advance(milliseconds(500));
  EXPECT_EQ(most, 3u);
  cluster.crash("bank0");
  has_crashed = true;
  static_cast<void>(cluster.try_run());
  EXPECT_EQ(after_crash, 2u);
}

// A worker's state: what its functions have counted.
struct Tally {
  int64_t begun = 0;
  int64_t done = 0;
};

// Ends a second after it has begun.
int64_t count_slowly(CallContext& call) {
  return call.with_state<Tally>([&call](Tally& tally) {
    ++tally.begun;
    call.sleep(seconds(1));
    return ++tally.done;
  });
}

TEST(Invariant, SeesTheStatesOfWorkersAndWhichAreBusy) {
  // Goal: what Program::state gave a worker is a value like those that references own, for as long
  // as it has it. Method: a state that is changed, left for a second and changed back; all its
  // values in order, with those of a worker whose state is not touched and one that has none.
  FunctionRegistry registry;
  registry.function("count_slowly", &count_slowly);
  Program program(std::move(registry));
  program.worker("one").state<Tally>();
  program.worker("two").state<Tally>();
  program.worker("client", [](Worker& worker) {
    worker.rpc_sync("one", &count_slowly);
    worker.rpc_sync("one", &count_slowly);
  });
  std::vector<std::string> told;
  std::vector<std::string> busy_at_two;
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.add_invariant("told", [&](const Values& values) -> std::optional<std::string> {
    for (const auto& tally : values.of<Tally>("one")) {
      EXPECT_EQ(tally.id, CausalId{});
      EXPECT_EQ(tally.worker, "one");
      const std::string now = std::to_string(tally->begun) + " begun, " +
                              std::to_string(tally->done) + " done" + (tally.busy ? ", busy" : "");
      if (told.empty() || told.back() != now) told.push_back(now);
    }
    for (const auto& tally : values.of<Tally>("two"))
      if (tally.busy || tally->begun > 0) busy_at_two.emplace_back(tally.worker);
    EXPECT_TRUE(values.of<Tally>("client").empty());
    return std::nullopt;
  });
  cluster.run();
  EXPECT_EQ(told,
            (std::vector<std::string>{"0 begun, 0 done", "1 begun, 0 done, busy", "1 begun, 1 done",
                                      "2 begun, 1 done, busy", "2 begun, 2 done"}));
  EXPECT_TRUE(busy_at_two.empty());
}

TEST(Invariant, OverAStateFailsTheRunThatBreaksIt) {
  // Goal: three lines judge a sum over the states of all workers. Method: functions that begin and
  // do not end while the run goes on.
  FunctionRegistry registry;
  registry.function("count_slowly", &count_slowly);
  Program program(std::move(registry));
  program
      .worker(
          "bank", [](Worker&) {}, Count{2})
      .state<Tally>();
  program.worker("client", [](Worker& worker) {
    const Future<int64_t> one = worker.rpc_async("bank0", &count_slowly);
    const Future<int64_t> other = worker.rpc_async("bank1", &count_slowly);
    static_cast<void>(one.wait() + other.wait());
  });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.add_invariant("one at a time", [](const Values& values) -> std::optional<std::string> {
    int64_t begun = 0;
    for (const auto& tally : values.of<Tally>()) begun += tally->begun - tally->done;
    return begun > 1 ? std::optional("there are " + std::to_string(begun)) : std::nullopt;
  });
  const RunReport& report = cluster.try_run();
  ASSERT_FALSE(report.ok);
  EXPECT_EQ(to_text(*report.failure), "one at a time: the values: there are 2");
}

TEST(Invariant, AWrongNameAndWhatItThrowsAreFailures) {
  // Goal: an invariant that cannot look does not hold in silence. Method: a worker that is none; a
  // method of the value that throws.
  const Program program = banks([](Worker&, const RRef<Account>&, const RRef<Account>&) {});
  Cluster cluster(Seed{1}, program);
  cluster.add_invariant("rich", [](const Values& values) -> std::optional<std::string> {
    static_cast<void>(values.of<Account>("bank"));
    return std::nullopt;
  });
  EXPECT_EQ(to_text(*cluster.try_run().failure),
            "rich: the values: looking at it threw: there is no worker named 'bank'; there are: "
            "bank0 bank1 client");
}

TEST(Invariant, IsHuntedMadeSmallAndRepeatedAsAnyFailure) {
  // Goal: it fails by an oracle of its own name. Method: a transfer whose answer is awaited for too
  // short a time is made again, in some seeds; the message of the hunt.
  const Program program = banks([](Worker& worker, const RRef<Account>& one, const RRef<Account>&) {
    for (int i = 0; i < 10; ++i) {
      try {
        worker.with_timeout(seconds(1)).rpc_sync(one, &Account::add, -1);
      } catch (const RpcError&) {
        worker.rpc_sync(one, &Account::add, -1);
      }
    }
  });
  const testing::AssertionResult found =
      hunt({.seeds = 500, .cluster = {.faults = FaultLevel::hostile}},
           [&program](Seed seed, const ClusterOptions& options) {
             Cluster cluster(seed, program, options);
             cluster.add_invariant("never negative", never_negative);
             cluster.run();
           });
  ASSERT_FALSE(found);
  const std::string message = found.message();
  EXPECT_NE(
      message.find("oracle 'never negative' failed on the values: an account at bank0 has -1"),
      std::string::npos)
      << message;
  EXPECT_NE(message.find("--benign --decide "), std::string::npos) << message;
}

}  // namespace
}  // namespace rehearsal::sim
