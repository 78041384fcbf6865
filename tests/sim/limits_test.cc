#include <gtest/gtest.h>

#include "core/api/call_context.h"
#include "core/api/rref.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "tests/effort.h"

namespace rehearsal::sim {
namespace {

// A value whose method waits for another value.
class Box {
 public:
  explicit Box(int64_t content) : content_(content) {}
  int64_t content() const { return content_; }
  int64_t sum_with(CallContext& context, const RRef<Box>& other) const {
    return content_ + context.rpc_sync(other, &Box::content);
  }

 private:
  int64_t content_;
};

Program box_program(const std::string& first_owner, const std::string& second_owner) {
  FunctionRegistry registry;
  registry.type<Box>("Box")
      .constructor<int64_t>()
      .method("content", &Box::content)
      .method("sum_with", &Box::sum_with);
  Program program(std::move(registry));
  const auto add_up = [first_owner, second_owner](Worker& worker) {
    for (int64_t i = 0; i < 20; ++i) {
      const auto first = worker.remote<Box>(first_owner, i);
      const auto second = worker.remote<Box>(second_owner, 100);
      if (first.rpc_sync(&Box::sum_with, second) != i + 100) throw std::logic_error("a wrong sum");
    }
  };
  program.worker("a", add_up).worker("b", add_up);
  return program;
}

TEST(Limits, ACreationDoesNotWaitForAFunctionThatWaitsForIt) {
  // Goal: what executes may need a value whose creation came later. Method: one function at a time
  // for each worker; the two values at one worker or at two, in many orders.
  for (const char* second_owner : {"a", "b"}) {
    const Program program = box_program("a", second_owner);
    for (uint64_t seed = 1; seed <= tries(8); ++seed) {
      ClusterOptions options{.strategy = StrategyKind::random_walk, .faults = FaultLevel::mild};
      options.adjust_node = [](NodeOptions& node) { node.execution_limit = 1; };
      Cluster cluster(Seed{seed}, program, options);
      const RunReport& report = cluster.try_run();
      EXPECT_TRUE(report.ok) << "seed " << seed << ": " << report.failure->message;
    }
  }
}

}  // namespace
}  // namespace rehearsal::sim
