// Goal: a user who sets weights and acts by them needs no round trip between the two. Method: calls
// of sizes that change in both directions, with the handle and without it, in both worlds; in the
// simulator through cut links and with many orders of events.
#include <ATen/Functions.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::in_order_test {
namespace {

constexpr int64_t kWeights = 200'000;  // floats

class Policy {
 public:
  Policy() = default;
  void set(int64_t version, const at::Tensor& weights) {
    weights_ = weights;
    version_ = version;
  }
  int64_t act() const { return version_; }

 private:
  at::Tensor weights_;
  int64_t version_ = 0;
};

FunctionRegistry policies() {
  FunctionRegistry registry;
  registry.type<Policy>("Policy")
      .constructor<>()
      .method("set", &Policy::set)
      .method("act", &Policy::act);
  return registry;
}

// The versions by which a policy acts that is set to 1, 2 … with weights of changing size, each
// time before it acts.
template <class P>
std::vector<int64_t> versions_of(const P& policy) {
  std::vector<Future<int64_t>> acts;
  std::vector<Future<Unit>> sets;
  for (int64_t version = 1; version <= 8; ++version) {
    const at::Tensor weights = at::zeros({version % 3 == 0 ? 1 : kWeights});
    sets.push_back(policy.rpc_async(&Policy::set, version, weights));
    acts.push_back(policy.rpc_async(&Policy::act));
  }
  for (const Future<Unit>& set : sets) set.wait();
  std::vector<int64_t> versions;
  for (const Future<int64_t>& act : acts) versions.push_back(act.wait());
  return versions;
}

const std::vector<int64_t> kInOrder = {1, 2, 3, 4, 5, 6, 7, 8};

Program acting(const std::function<void(const RRef<Policy>&)>& body) {
  return one_caller(policies(), [body](Worker& worker) { body(worker.remote<Policy>("worker1")); });
}

TEST(InOrder, APolicyActsByTheWeightsThatWereSetBefore) {
  in_both_worlds(acting([](const RRef<Policy>& policy) {
    EXPECT_EQ(versions_of(policy.in_order()), kInOrder);
    EXPECT_EQ(policy.in_order().rpc_sync(&Policy::act), 8);
    EXPECT_EQ(policy.in_order().remote(&Policy::act).to_here(), 8);
  }));
}

TEST(InOrder, AlsoForACallerThatOwnsTheValue) {
  in_both_worlds(one_caller(policies(), [](Worker& worker) {
    EXPECT_EQ(versions_of(worker.remote<Policy>(worker.id()).in_order()), kInOrder);
  }));
}

TEST(InOrder, LastsThroughWhateverTheNetworkDoes) {
  sim::HuntOptions hunt;
  hunt.seeds = tries(100);
  hunt.cluster.faults = sim::FaultLevel::hostile;
  const Program program = acting([](const RRef<Policy>& policy) {
    const std::vector<int64_t> versions = versions_of(policy.in_order());
    if (versions != kInOrder) throw std::logic_error("a policy acted by other weights");
  });
  EXPECT_TRUE(sim::hunt(hunt, [&](Seed seed, const sim::ClusterOptions& of_seed) {
    sim::Cluster(seed, program, of_seed).run();
  }));
}

TEST(InOrder, OtherCallsHaveNone) {
  // Goal: a simulated run shows a user of the plain reference what may happen. Method: seeds.
  std::atomic<int> others = 0;
  const Program program = acting([&](const RRef<Policy>& policy) {
    if (versions_of(policy) != kInOrder) ++others;
  });
  for (uint64_t seed = 1; seed <= 10; ++seed) sim::Cluster(Seed{seed}, program).run();
  EXPECT_GT(others, 0);
}

}  // namespace
}  // namespace rehearsal::reference::in_order_test
