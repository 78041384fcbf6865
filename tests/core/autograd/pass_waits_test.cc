// A pass that goes on is told of, and what a worker holds for passes is counted.
#include <gtest/gtest.h>

#include <string>

#include "core/api/backward_options.h"
#include "core/base/mutants.h"
#include "sim/cluster.h"
#include "tests/core/autograd/remote_model.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;

at::Tensor twice_of(const at::Tensor& input) { return input * 2; }

// Calls another worker for a result that it throws away.
at::Tensor wasteful(CallContext& call, const at::Tensor& input) {
  (void)call.rpc_sync("far", &twice_of, numbers({3}, 7).requires_grad_());
  return input * 3;
}

Program train_wastefully(const Program::Main& main) {
  FunctionRegistry registry;
  registry.function("doubled", &twice_of).function("wasteful", &wasteful);
  Program program(registry);
  program.worker("server").worker("far").worker("trainer", main);
  return program;
}

// Of a pass in FAST mode that hangs where it should fail.
std::string told_of_hanging(const Program::Main& main) {
  ClusterOptions options;
  options.adjust_node = [](NodeOptions& node) { node.mutants = {"unused_result_hangs"}; };
  const Program program = train_wastefully(main);
  return Cluster(Seed{1}, program, options).try_run().failure.value().message;
}

TEST(PassWaits, NameTheMessagesThatGetNoGradient) {
  // Goal: people see what a pass waits for. Method: a result that nothing depends on, with the rule
  // left out that makes it an error.
  if (!kHasMutants) GTEST_SKIP() << "this build cannot leave out rules";
  const std::string told = told_of_hanging([](Worker& worker) {
    const AutogradContext context = worker.autograd_context();
    const at::Tensor w = numbers({3}, 5).requires_grad_();
    (void)context.rpc_sync("server", &twice_of, w);
    context.backward({context.rpc_sync("server", &twice_of, w).sum()}, {.mode = PassMode::fast});
  });
  EXPECT_NE(told.find(" by 'trainer': no gradient has come for the arguments of 'doubled', sent to "
                      "'server'\n"),
            std::string::npos)
      << told;
}

TEST(PassWaits, NameTheWorkersThatHaveNotReported) {
  // Goal: the same of a wave. Method: a worker behind the starter finds that its part is
  // incomplete.
  if (!kHasMutants) GTEST_SKIP() << "this build cannot leave out rules";
  const std::string told = told_of_hanging([](Worker& worker) {
    const AutogradContext context = worker.autograd_context();
    const at::Tensor w = numbers({3}, 5).requires_grad_();
    context.backward({context.rpc_sync("server", &wasteful, w).sum()}, {.mode = PassMode::fast});
  });
  EXPECT_NE(told.find(" by 'trainer': reports of 'server'\n"), std::string::npos) << told;
  EXPECT_NE(told.find(" by 'trainer': no gradient has come for the arguments of 'doubled', sent to "
                      "'far'\n"),
            std::string::npos)
      << told;
}

TEST(PassWaits, SendFunctionsAreCountedWhileTheirContextIsHere) {
  // Goal: the number that is watched. Method: two calls in one context, and its end.
  const Program program = train_wastefully([](Worker& worker) {
    const at::Tensor w = numbers({3}, 5).requires_grad_();
    const auto count = [&worker] { return worker.debug_info().at("autograd.send_functions"); };
    EXPECT_EQ(count(), "0");
    {
      const AutogradContext context = worker.autograd_context();
      (void)context.rpc_sync("server", &twice_of, w);
      EXPECT_EQ(count(), "1");
      (void)context.rpc_sync("server", &twice_of, w);
      EXPECT_EQ(count(), "2");
    }
    EXPECT_EQ(count(), "0");
  });
  Cluster(Seed{1}, program).run();
}

}  // namespace
}  // namespace rehearsal::testing
