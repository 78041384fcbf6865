#include "core/autograd/node_evaluation.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

#include "core/base/error.h"
#include "tests/core/autograd/walk_support.h"

namespace rehearsal {
namespace {

using testing::leaf;
using testing::root_of;
using torch::autograd::variable_list;

struct NodeHook final : torch::autograd::FunctionPreHook, torch::autograd::FunctionPostHook {
  NodeHook(std::vector<std::string>& log, std::string name) : log(log), name(std::move(name)) {}
  variable_list operator()(const variable_list& gradients) override {
    log.push_back(name);
    return gradients;
  }
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    log.push_back(name + "(" + std::to_string(outputs.size()) + "," +
                  std::to_string(inputs.size()) + ")");
    return outputs;
  }
  std::vector<std::string>& log;
  std::string name;
};

struct Logging : torch::autograd::Function<Logging> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& a) {
    return a * 2;
  }
  static variable_list backward(torch::autograd::AutogradContext*, variable_list gradients);
};
std::vector<std::string>* logging_log = nullptr;
variable_list Logging::backward(torch::autograd::AutogradContext*, variable_list gradients) {
  logging_log->push_back(at::GradMode::is_enabled() ? "apply with grad mode" : "apply");
  return {gradients[0] * 2};
}

TEST(NodeEvaluation, HooksOfEveryKindRunInTheDocumentedOrder) {
  // Goal: tensor, retain_grad, pre, node, post; at a leaf: tensor, pre, post-accumulate, post, with
  // `.grad` untouched. Method: one of each, in a log.
  std::vector<std::string> log;
  logging_log = &log;
  const at::Tensor x = leaf({1, 2});
  const at::Tensor y = Logging::apply(x);
  y.retain_grad();
  y.register_hook([&](const at::Tensor&) {
    log.push_back(y.grad().defined() ? "tensor after retain" : "tensor");
  });
  y.grad_fn()->add_pre_hook(std::make_unique<NodeHook>(log, "pre"));
  y.grad_fn()->add_post_hook(std::make_unique<NodeHook>(log, "post"));
  const auto accumulator = torch::autograd::impl::gradient_edge(x).function;
  x.register_hook([&](const at::Tensor&) { log.push_back("leaf tensor"); });
  accumulator->add_pre_hook(std::make_unique<NodeHook>(log, "leaf pre"));
  accumulator->add_post_hook(std::make_unique<NodeHook>(log, "leaf post"));
  struct AfterAccumulation final : torch::autograd::PostAccumulateGradHook {
    explicit AfterAccumulation(std::vector<std::string>& log) : log(log) {}
    void operator()(const at::Tensor& variable) override {
      log.push_back(variable.grad().defined() ? "leaf done with grad" : "leaf done");
    }
    std::vector<std::string>& log;
  };
  torch::autograd::impl::set_post_acc_grad_hooks(x, std::make_unique<AfterAccumulation>(log));

  WalkScope scope;
  scope.roots = {root_of(y)};
  const LeafGradients gradients = testing::walk_all(std::move(scope));
  EXPECT_EQ(log, (std::vector<std::string>{"tensor", "pre", "apply", "post(1,1)", "leaf tensor",
                                           "leaf pre", "leaf done", "leaf post(0,1)"}));
  EXPECT_TRUE(y.grad().equal(torch::ones({2})));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(gradients.find(x).equal(torch::full({2}, 2.F)));
}

struct Reducing : torch::autograd::Function<Reducing> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& a) {
    return a * 2;
  }
  static variable_list backward(torch::autograd::AutogradContext*, variable_list gradients) {
    torch::autograd::Engine::get_default_engine().queue_callback([] {});
    return {gradients[0]};
  }
};

TEST(NodeEvaluation, EngineCallbacksAreRefusedWithAClearError) {
  // Goal: data-parallel reducers fail loudly, in a node and in a hook. Method: queue_callback.
  const at::Tensor x = leaf({1});
  const at::Tensor hooked = leaf({1});
  hooked.register_hook([](const at::Tensor&) {
    torch::autograd::Engine::get_default_engine().queue_callback([] {});
  });
  for (const at::Tensor& root : {Reducing::apply(x), hooked * 2}) {
    testing::RecordingHost host;
    WalkScope scope;
    scope.roots = {root_of(root)};
    GraphWalk walk(std::move(scope), host);
    try {
      walk.run();
      FAIL() << "the callback was accepted";
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::autograd);
      EXPECT_NE(error.error().text.find("Engine::queue_callback"), std::string::npos);
    }
  }
}

struct WrongShape : torch::autograd::Function<WrongShape> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& a) {
    return a * 2;
  }
  static variable_list backward(torch::autograd::AutogradContext*, variable_list) {
    return {torch::ones({5})};
  }
};

TEST(NodeEvaluation, OutputsThatDoNotFitAreRefusedWithTheNodesName) {
  // Goal: LibTorch's check of outputs. Method: a node that gives a wrong shape.
  const at::Tensor x = leaf({1, 2});
  testing::RecordingHost host;
  WalkScope scope;
  scope.roots = {root_of(WrongShape::apply(x))};
  GraphWalk walk(std::move(scope), host);
  try {
    walk.run();
    FAIL() << "a wrong shape was accepted";
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_NE(text.find("WrongShape"), std::string::npos) << text;
    EXPECT_NE(text.find("invalid gradient at index 0"), std::string::npos) << text;
  }
}

TEST(NodeEvaluation, AnomalyModeNamesTheNodeThatMadeANan) {
  // Goal: the engine's check for NaN. Method: the root of a negative number, in anomaly mode.
  const at::Tensor x = leaf({-1});
  const at::Tensor root = x.sqrt();
  torch::autograd::AnomalyMode::set_enabled(true);
  testing::RecordingHost host;
  WalkScope scope;
  scope.roots = {root_of(root)};
  GraphWalk walk(std::move(scope), host);
  EXPECT_THROW(walk.run(), c10::Error);
  torch::autograd::AnomalyMode::set_enabled(false);
  ASSERT_NE(walk.evaluating(), nullptr);
  EXPECT_EQ(walk.evaluating()->name(), "SqrtBackward0");
}

TEST(NodeEvaluation, KnowsWhichNodesMayRunUserCode) {
  // Goal: only these need a gate. Method: LibTorch's node, bare and with each hook; own functions.
  const at::Tensor x = leaf({1});
  const at::Tensor plain = x * 2;
  EXPECT_FALSE(may_run_user_code(*plain.grad_fn()));
  EXPECT_TRUE(may_run_user_code(*Logging::apply(x).grad_fn()));
  EXPECT_FALSE(may_run_user_code(*torch::autograd::impl::gradient_edge(x).function));
  EXPECT_FALSE(may_run_user_code(*SendRpcBackward::make(testing::route(0), {x})));
  const at::Tensor received = torch::ones({1});
  EXPECT_FALSE(may_run_user_code(*RecvRpcBackward::make(testing::route(0), {received})));
  received.register_hook([](const at::Tensor&) {});
  EXPECT_TRUE(may_run_user_code(*received.grad_fn()));
  const at::Tensor hooked = x * 2;
  hooked.register_hook([](const at::Tensor&) {});
  EXPECT_TRUE(may_run_user_code(*hooked.grad_fn()));
  const at::Tensor retained = x * 2;
  retained.retain_grad();
  EXPECT_TRUE(may_run_user_code(*retained.grad_fn()));
  std::vector<std::string> log;
  const at::Tensor before = x * 2;
  before.grad_fn()->add_pre_hook(std::make_unique<NodeHook>(log, ""));
  EXPECT_TRUE(may_run_user_code(*before.grad_fn()));
  const at::Tensor after = x * 2;
  after.grad_fn()->add_post_hook(std::make_unique<NodeHook>(log, ""));
  EXPECT_TRUE(may_run_user_code(*after.grad_fn()));
}

}  // namespace
}  // namespace rehearsal
