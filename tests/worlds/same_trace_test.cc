#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "tests/worlds/two_processes.h"

namespace rehearsal::test {
namespace {

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

// Calls back and forth until no hop is left.
int64_t bounce(CallContext& context, int64_t hops) {
  if (hops == 0) return 0;
  return 1 + context.rpc_sync(context.caller_info().id, &bounce, hops - 1);
}

struct Counter {
  explicit Counter(int64_t start) : total(start) {}
  int64_t add(int64_t amount) { return total += amount; }
  int64_t total;
};

// The owner shares its reference: it is registered when the answer leaves.
RRef<Counter> make_counter(CallContext& context, int64_t start) {
  return context.rref(Counter(start));
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// Calls of every kind, one after another.
void caller_main(Worker& worker) {
  const at::Tensor sum = worker.rpc_sync("callee", &add, at::ones({2}), at::ones({2}));
  require(sum.equal(at::full({2}, 2.0)), "add");
  require(worker.rpc_sync("callee", &bounce, int64_t{3}) == 3, "bounce");
  const RRef<Counter> counter = worker.rpc_sync("callee", &make_counter, int64_t{40});
  require(counter.rpc_sync(&Counter::add, int64_t{2}) == 42, "Counter.add");
  const auto ones = worker.rpc_sync<at::Tensor>("callee", "aten::ones_like", at::zeros({3}));
  require(ones.equal(at::ones({3})), "aten::ones_like");
}

Program calls_program() {
  FunctionRegistry registry;
  registry.function("add", &add).function("bounce", &bounce).function("make", &make_counter);
  registry.type<Counter>("Counter").method("add", &Counter::add);
  Program program(registry);
  program.worker("callee", [](Worker&) {}).worker("caller", &caller_main);
  return program;
}

// Entries that come from the worker's own main end at their own time: the callee's main is empty,
// and ends before, between or after the first calls.
std::vector<std::string> without_mains(const std::vector<std::string>& lines) {
  std::vector<std::string> kept;
  const std::string main_start = lines.empty() ? "" : lines.front();
  const std::string id = main_start.substr(main_start.rfind(' '));
  for (const std::string& line : lines)
    if (!line.ends_with(id) || line.starts_with("frame")) kept.push_back(line);
  return kept;
}

// Rows: rpc_test::RpcTest.test_register_rpc_backend_and_set_and_start_rpc_backend
TEST(SameTrace, StrandInputsAreEqualInTheSimulatorAndBetweenTwoProcesses) {
  // Goal: the core cannot tell the worlds apart. Method: the same calls, made one after another, in
  // both; every input of both strands is compared.
  const Program program = calls_program();
  const auto over_tcp = traces_over_tcp(program);
  const auto simulated = traces_in_simulator(program);
  ASSERT_GT(simulated[1].size(), 20u);
  EXPECT_EQ(simulated[1], over_tcp[1]);
  EXPECT_EQ(without_mains(simulated[0]), without_mains(over_tcp[0]));
}

}  // namespace
}  // namespace rehearsal::test
