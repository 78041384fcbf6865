// A value outlives the batches that its methods have filled, also when its worker ends first.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "core/api/batcher.h"
#include "core/api/rref.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "tests/effort.h"

namespace rehearsal {
namespace {

using std::chrono::microseconds;

// How often a body found its object gone, and how often it ran.
struct Seen {
  int gone = 0;
  int ran = 0;
};
Seen* seen = nullptr;

// Answers by a body that uses the object.
class Policy {
 public:
  explicit Policy(CallContext& call)
      : batcher_(call, {.size = 2}, [alive = alive_](std::vector<int64_t> items) {
          ++seen->ran;
          if (!*alive) ++seen->gone;
          return items;
        }) {}
  ~Policy() { *alive_ = false; }
  Future<int64_t> action(int64_t state) { return batcher_.add(state); }

 private:
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Batcher<int64_t, int64_t> batcher_;
};

// Without an answer the server ends after `life`.
Program program_of(Duration life) {
  FunctionRegistry registry;
  registry.type<Policy>("Policy").constructor<CallContext&>().method("action", &Policy::action);
  Program program(std::move(registry));
  program.worker("server", [life](Worker& worker) {
    worker.sleep(life);
    throw std::runtime_error("the server ends");
  });
  program.worker("client", [](Worker& worker) {
    const auto policy = worker.remote<Policy>("server");
    for (int64_t i = 0; i < 20; ++i) {
      const auto one = policy.with_timeout(microseconds(200)).rpc_async(&Policy::action, i);
      const auto other = policy.rpc_async(&Policy::action, i);
      static_cast<void>(one.result());
      static_cast<void>(other.result());
    }
  });
  return program;
}

TEST(BatchAtTheEnd, UsesNoObjectThatIsGone) {
  // Goal: a body that has not begun when its worker ends finds its object, though the call that
  // filled the batch was given up. Method: the worker ends at each of many moments; a canary.
  Seen here;
  seen = &here;
  for (uint64_t seed = 1; seed <= tries(12); ++seed)
    for (int life = 300; life < 1500; life += 7) {
      const Program program = program_of(microseconds(life));
      sim::Cluster cluster(Seed{seed}, program, {.faults = sim::FaultLevel::mild});
      static_cast<void>(cluster.try_run());
    }
  seen = nullptr;
  EXPECT_EQ(here.gone, 0) << here.ran;
  EXPECT_GT(here.ran, 100);
}

}  // namespace
}  // namespace rehearsal
