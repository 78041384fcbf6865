#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/api/call_context.h"
#include "core/api/process_group.h"
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

// Adds up with the same function of the other worker.
int64_t sum_there(CallContext& context) {
  const ProcessGroup group(context);
  const at::Tensor one = at::ones({1}, at::kLong);
  group.all_reduce(one);
  return one.item<int64_t>();
}

int64_t one() { return 1; }

// The value of a call to the other worker that a continuation makes.
int64_t continued(CallContext& context, const std::string& other) {
  const Calls calls = context;
  return context.after(std::chrono::microseconds(1))
      .then([calls, other](Unit) { return calls.rpc_async(other, &one); })
      .wait();
}

// One function at a time for each worker, in many orders.
void expect_it_holds_with_one_place(const Program& program) {
  for (uint64_t seed = 1; seed <= tries(8); ++seed) {
    ClusterOptions options{.strategy = StrategyKind::random_walk, .faults = FaultLevel::mild};
    options.adjust_node = [](NodeOptions& node) { node.execution_limit = 1; };
    Cluster cluster(Seed{seed}, program, options);
    const RunReport& report = cluster.try_run();
    EXPECT_TRUE(report.ok) << "seed " << seed << ": " << report.failure->message;
  }
}

TEST(Limits, ACreationDoesNotWaitForAFunctionThatWaitsForIt) {
  // Goal: what executes may need a value whose creation came later. Method: one function at a time
  // for each worker; the two values at one worker or at two, in many orders.
  for (const char* second_owner : {"a", "b"})
    expect_it_holds_with_one_place(box_program("a", second_owner));
}

TEST(Limits, NoPartOfACollectiveOperationWaitsForAFunctionThatWaitsForIt) {
  // Goal: functions that others have called may work together, though they take all places. Method:
  // each main has the other worker add up.
  FunctionRegistry registry;
  registry.function("sum_there", &sum_there);
  Program program(std::move(registry));
  const auto sum_at = [](const std::string& other) {
    return [other](Worker& worker) {
      if (worker.rpc_sync(other, &sum_there) != 2) throw std::logic_error("a wrong sum");
    };
  };
  program.worker("a", sum_at("b")).worker("b", sum_at("a"));
  expect_it_holds_with_one_place(program);
}

TEST(Limits, CallsOfContinuationsDoNotWaitForAFunctionThatWaitsForThem) {
  // Goal: as of nested calls. Method: each main has the other one wait for a continuation that
  // calls back, while that worker's only place is taken by a function that does the same.
  FunctionRegistry registry;
  registry.function("continued", &continued).function("one", &one);
  Program program(std::move(registry));
  const auto go_on = [](const std::string& self, const std::string& other) {
    return [self, other](Worker& worker) {
      for (int i = 0; i < 10; ++i)
        if (worker.rpc_sync(other, &continued, self) != 1) throw std::logic_error("a wrong value");
    };
  };
  program.worker("a", go_on("a", "b")).worker("b", go_on("b", "a"));
  expect_it_holds_with_one_place(program);
}

}  // namespace
}  // namespace rehearsal::sim
