#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <vector>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/world/event_queue.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

using net_fake::Chain;
using std::chrono::microseconds;

class Recorded final : public net_fake::Occurrence {
 public:
  Recorded(Chain chain, std::vector<uint64_t>& happened) : chain_(chain), happened_(happened) {}
  WorkerId worker(uint64_t) const override { return WorkerId{0}; }
  Chain chain(uint64_t) const override { return chain_; }
  bool due(uint64_t) const override { return true; }
  void happen(uint64_t ticket) override { happened_.push_back(ticket); }

 private:
  const Chain chain_;
  std::vector<uint64_t>& happened_;
};

class TakeLast final : public Strategy {
 public:
  size_t pick(const std::vector<Enabled>& enabled) override { return enabled.size() - 1; }
  void happened(const Chain&) override {}
};

class ChoosingQueue : public testing::Test {
 protected:
  ChoosingQueue() { queue.set_strategy(&last, microseconds(100)); }
  void at(int64_t when, Recorded& what, uint64_t ticket) {
    queue.at(Instant{microseconds(when)}, what, ticket);
  }
  void run_all() {
    Instant before{};
    while (const auto next = queue.peek()) {
      EXPECT_EQ(queue.peek()->serial, next->serial);  // However often somebody looks.
      queue.take(*next);
      EXPECT_GE(queue.now(), before);
      before = queue.now();
      next->what->happen(next->ticket);
    }
  }
  TakeLast last;
  EventQueue queue;
  std::vector<uint64_t> happened;
};

TEST_F(ChoosingQueue, AChainKeepsItsOrderAndNothingWaitsForLongerThanTheWindow) {
  Recorded one({Chain::Kind::stack, 1, 0}, happened);
  Recorded other({Chain::Kind::stack, 2, 0}, happened);
  at(0, one, 1);
  at(10, one, 2);
  at(50, other, 3);
  at(60, other, 4);
  at(101, other, 5);
  run_all();
  // 5 is 101 µs behind 1, which must go first; then it may overtake 2.
  EXPECT_EQ(happened, (std::vector<uint64_t>{3, 4, 1, 5, 2}));
}

TEST_F(ChoosingQueue, AFrameDoesNotOvertakeTheNewsOfItsConnection) {
  Recorded frames({Chain::Kind::small_lane, 5, 3}, happened);
  Recorded others({Chain::Kind::small_lane, 5, 4}, happened);
  Recorded link({Chain::Kind::news, 3, 5}, happened);
  at(10, link, 1);
  at(20, frames, 2);
  at(30, others, 3);
  run_all();
  EXPECT_EQ(happened, (std::vector<uint64_t>{3, 1, 2}));
}

// Every strategy, on a program that holds in every order.
TEST(StrategyRuns, ARunIsAFunctionOfItsSeedAndStrategy) {
  const Program program = adding_program();
  const auto fingerprint = [&program](uint64_t seed, StrategyKind kind) {
    Cluster cluster(Seed{seed}, program, {.strategy = kind, .faults = FaultLevel::hostile});
    return cluster.run().fingerprint;
  };
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::map<std::string, StrategyKind> seen;
    for (const StrategyKind kind : kStrategyKinds) {
      const std::string first = fingerprint(seed, kind);
      EXPECT_EQ(first, fingerprint(seed, kind)) << name_of(kind);
      // One may have nothing to deviate from; two are random walks while they know no counts.
      if (kind == StrategyKind::delays || kind == StrategyKind::urw || kind == StrategyKind::surw)
        continue;
      EXPECT_TRUE(seen.emplace(first, kind).second) << seed;
    }
  }
}

// A program with a race that latencies alone never show: what was called first starts first.
std::vector<int64_t> arrived;
void arrive(const int64_t& number) { arrived.push_back(number); }

void call_twice(Worker& worker) {
  arrived.clear();
  const auto first = worker.rpc_async("owner", &arrive, int64_t{1});
  const auto second = worker.rpc_async("owner", &arrive, int64_t{2});
  first.wait();
  second.wait();
  if (arrived.front() != 1) throw std::logic_error("overtaken");
}

TEST(StrategyRuns, FindAnOrderThatLatenciesDoNotShow) {
  FunctionRegistry registry;
  registry.function("arrive", &arrive);
  Program program(std::move(registry));
  program.worker("owner", [](Worker&) {}).worker("caller", &call_twice);
  const auto failures = [&program](StrategyKind kind) {
    int count = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      Cluster cluster(Seed{seed}, program, {.strategy = kind, .faults = FaultLevel::none});
      const RunReport& report = cluster.try_run();
      if (report.ok) continue;
      EXPECT_NE(report.failure->message.find("overtaken"), std::string::npos);
      ++count;
    }
    return count;
  };
  EXPECT_EQ(failures(StrategyKind::timed_swarm), 0);
  for (const StrategyKind kind : {StrategyKind::random_walk, StrategyKind::pct, StrategyKind::pos})
    EXPECT_GT(failures(kind), 0) << name_of(kind);
}

}  // namespace
}  // namespace rehearsal::sim
