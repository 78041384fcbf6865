// Walks that rest at gates, and hold back the work that leads to leaves.
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>

#include "core/api/pass_gate.h"
#include "core/autograd/graph_walk.h"
#include "tests/core/autograd/walk_support.h"

namespace rehearsal {
namespace {

using testing::RecordingHost;
using testing::root_of;
using testing::route;
using testing::same_bits;
using torch::autograd::variable_list;

// Opens whenever the test says so, and remembers what has ended.
struct TestGate final : PassGate {
  explicit TestGate(bool holds) : holds(holds) {}
  [[nodiscard]] bool holds_leaves() const override { return holds; }
  void ask(GatePart /*part*/, UniqueFunction<void(Status)> /*open*/) override {}
  void end(GatePart part) override { ended.push_back(part); }
  const bool holds;
  std::vector<GatePart> ended;
};

// A section over an input that another worker has sent.
struct Section {
  using Body = std::function<at::Tensor(const at::Tensor& input)>;

  Section(const at::Tensor& value, const Body& body, bool holds)
      : gate(std::make_shared<TestGate>(holds)), input(value.detach().clone()) {
    RecvRpcBackward::make(route(0), {input});
    GatedSection section(gate);
    output = section.leave(body(section.enter(input)));
  }

  std::shared_ptr<TestGate> gate;
  at::Tensor input;
  at::Tensor output;
};

// The names of the operators that run while it lives.
class Operators {
 public:
  Operators()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback([](const at::RecordFunction& function)
                                           -> std::unique_ptr<at::ObserverContext> {
              names().emplace_back(function.name());
              return nullptr;
            }).scopes({at::RecordScope::FUNCTION}))) {
    names().clear();
  }
  ~Operators() { at::removeCallback(handle_); }
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  [[nodiscard]] static int64_t count(const std::string& name) {
    return std::count(names().begin(), names().end(), name);
  }

 private:
  static std::vector<std::string>& names() {
    static std::vector<std::string> all;
    return all;
  }
  at::CallbackHandle handle_;
};

WalkScope scope_of(const at::Tensor& root) {
  WalkScope scope;
  scope.roots = {root_of(root)};
  return scope;
}

at::Tensor parameter(at::IntArrayRef sizes) {
  return (torch::randn(sizes) * 0.3).detach().requires_grad_();
}

TEST(GatedWalk, RestsAtAGateUntilItIsOpen) {
  // Goal: nothing behind a gate runs before, all of it afterwards, and the gate hears when.
  const at::Tensor weight = parameter({3, 3});
  Section section(
      torch::randn({2, 3}), [&](const at::Tensor& x) { return x.mm(weight); }, false);
  RecordingHost host;
  GraphWalk walk(scope_of(section.output.sum()), host);
  walk.run();
  ASSERT_EQ(host.gates.size(), 1u);
  EXPECT_EQ(host.gates[0].second, GatePart::flow);
  EXPECT_TRUE(host.received.empty());
  EXPECT_FALSE(walk.finished());
  EXPECT_TRUE(section.gate->ended.empty());

  walk.run_behind(host.gates[0].first, GatePart::flow);
  EXPECT_EQ(host.received.size(), 1u);
  EXPECT_TRUE(walk.finished());
  EXPECT_EQ(walk.take_gradients().size(), 1u);
  EXPECT_EQ(section.gate->ended, (std::vector{GatePart::flow, GatePart::leaves}));
}

// A function whose gradients are made in one go.
struct Together : torch::autograd::Function<Together> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    return x * weight;
  }
  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    return {gradients[0] * saved[1], (gradients[0] * saved[0]).sum(0)};
  }
};

struct Shape {
  std::string name;
  std::vector<int64_t> input;
  std::vector<at::Tensor> parameters;
  Section::Body body;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  const auto add =
      [&all](std::string name, std::vector<int64_t> input, std::vector<at::Tensor> p,
             const std::function<at::Tensor(const at::Tensor&, const std::vector<at::Tensor>&)>&
                 body) {
        all.push_back({std::move(name), std::move(input), p,
                       [body, p](const at::Tensor& x) { return body(x, p); }});
      };
  add("linear", {4, 5}, {parameter({6, 5}), parameter({6})},
      [](const auto& x, const auto& p) { return torch::linear(x, p[0], p[1]).tanh(); });
  add("linear of three dimensions", {2, 4, 5}, {parameter({6, 5}), parameter({6})},
      [](const auto& x, const auto& p) { return torch::linear(x, p[0], p[1]).relu(); });
  add("two layers with one weight", {4, 5}, {parameter({5, 5})},
      [](const auto& x, const auto& p) { return x.mm(p[0]).tanh().mm(p[0]); });
  add("convolutions", {2, 3, 8, 8},
      {parameter({4, 3, 3, 3}), parameter({4}), parameter({4, 4, 3, 3})},
      [](const auto& x, const auto& p) {
        const at::Tensor y = torch::conv2d(x, p[0], p[1], 1, 1).relu();
        return y + torch::conv2d(y, p[2], {}, 1, 1);
      });
  add("convolution over time", {2, 3, 9}, {parameter({4, 3, 3}), parameter({4})},
      [](const auto& x, const auto& p) { return torch::conv1d(x, p[0], p[1]); });
  add("attention", {2, 4, 6}, {parameter({6, 6}), parameter({6, 6}), parameter({6, 6})},
      [](const auto& x, const auto& p) {
        return at::scaled_dot_product_attention(x.matmul(p[0]), x.matmul(p[1]), x.matmul(p[2]));
      });
  add("layer norm", {4, 6}, {parameter({6}), parameter({6}), parameter({6, 6})},
      [](const auto& x, const auto& p) { return torch::layer_norm(x, {6}, p[0], p[1]).mm(p[2]); });
  add("scale and shift", {4, 6}, {parameter({6}), parameter({6}), parameter({1})},
      [](const auto& x, const auto& p) { return (x * p[0] + p[1]) / (p[2] + 3.0) - p[1]; });
  add("gated cell", {3, 4},
      {parameter({12, 4}), parameter({12, 4}), parameter({12}), parameter({12})},
      [](const auto& x, const auto& p) {
        return torch::gru_cell(x, x * 0.5, p[0], p[1], p[2], p[3]);
      });
  add("a function of the user", {4, 3}, {parameter({3}), parameter({3, 3})},
      [](const auto& x, const auto& p) { return Together::apply(x.mm(p[1]), p[0]).mm(p[1]); });
  return all;
}

TEST(GatedWalk, LeavesThatAreHeldBackGetTheSameBits) {
  // Goal: the first part makes the gradient of the input and no other; with the second all have the
  // bits of LibTorch's engine. Method: sections of all kinds.
  torch::manual_seed(1);
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.name);
    const at::Tensor value = torch::randn(shape.input);
    const at::Tensor here = value.detach().clone().requires_grad_();
    variable_list wanted{here};
    wanted.insert(wanted.end(), shape.parameters.begin(), shape.parameters.end());
    const auto expected = torch::autograd::grad({shape.body(here).pow(2).sum()}, wanted);

    Section section(value, shape.body, true);
    RecordingHost host;
    GraphWalk walk(scope_of(section.output.pow(2).sum()), host);
    walk.run();
    ASSERT_EQ(host.gates.size(), 1u);
    walk.run_behind(host.gates[0].first, GatePart::flow);
    ASSERT_EQ(host.received.size(), 1u);
    EXPECT_TRUE(same_bits(host.received[0].gradients[0], expected[0]));
    EXPECT_TRUE(walk.take_gradients().empty());
    EXPECT_FALSE(walk.finished());
    EXPECT_EQ(section.gate->ended, std::vector{GatePart::flow});
    ASSERT_EQ(host.gates.size(), 2u);
    EXPECT_EQ(host.gates[1].second, GatePart::leaves);

    walk.run_behind(host.gates[1].first, GatePart::leaves);
    EXPECT_TRUE(walk.finished());
    LeafGradients gradients;
    for (auto& [place, gradient] : walk.take_gradients()) gradients.accumulate(std::move(gradient));
    for (size_t i = 0; i < shape.parameters.size(); ++i)
      EXPECT_TRUE(same_bits(gradients.find(shape.parameters[i]), expected[i + 1])) << i;
    EXPECT_EQ(section.gate->ended, (std::vector{GatePart::flow, GatePart::leaves}));
  }
}

TEST(GatedWalk, AProductOfMatricesIsDividedIntoItsTwo) {
  // Goal: the first part multiplies for the input alone, the second for the weight alone.
  const at::Tensor weight = parameter({5, 5});
  Section section(
      torch::randn({4, 5}), [&](const at::Tensor& x) { return x.mm(weight); }, true);
  RecordingHost host;
  GraphWalk walk(scope_of(section.output.sum()), host);
  walk.run();
  {
    const Operators operators;
    walk.run_behind(host.gates.at(0).first, GatePart::flow);
    EXPECT_EQ(operators.count("aten::mm"), 1);
  }
  const Operators operators;
  walk.run_behind(host.gates.at(1).first, GatePart::leaves);
  EXPECT_EQ(operators.count("aten::mm"), 1);
}

TEST(GatedWalk, AHookThatChangesAGradientInPlaceIsTold) {
  // Goal: the second part never computes with a gradient that was changed meanwhile. Method: a hook
  // that does so with the gradient of a sum, which is that of its terms.
  const at::Tensor shift = parameter({3});
  Section section(
      torch::randn({2, 3}),
      [&](const at::Tensor& x) {
        const at::Tensor y = x * 1;
        y.register_hook([](const at::Tensor& gradient) { gradient.mul_(2); });
        return y + shift;
      },
      true);
  RecordingHost host;
  GraphWalk walk(scope_of(section.output.pow(2).sum()), host);
  walk.run();
  walk.run_behind(host.gates.at(0).first, GatePart::flow);
  try {
    walk.run_behind(host.gates.at(1).first, GatePart::leaves);
    FAIL() << "nothing was thrown";
  } catch (const RpcError& error) {
    EXPECT_NE(error.error().text.find("was changed in place"), std::string::npos);
  }
}

TEST(GatedWalk, WhatASectionDoesNotUseIsToldToItsSender) {
  // Goal: whoever sent an input that gets no gradient hears so when the gate opens; whoever is left
  // out with its gate, too. Method: two sections, of which the second takes no gradient on.
  const at::Tensor weight = parameter({3, 3});
  Section first(
      torch::randn({2, 3}), [&](const at::Tensor& x) { return x.mm(weight); }, true);
  const auto gate = std::make_shared<TestGate>(false);
  GatedSection second(gate);
  const at::Tensor output =
      second.leave((second.enter(first.output).detach() * weight.sum()).sum());
  RecordingHost host;
  GraphWalk walk(scope_of(output), host);
  walk.run();
  ASSERT_EQ(host.gates.size(), 1u);
  walk.run_behind(host.gates[0].first, GatePart::flow);
  EXPECT_EQ(gate->ended, (std::vector{GatePart::flow, GatePart::leaves}));
  EXPECT_EQ(first.gate->ended, (std::vector{GatePart::flow, GatePart::leaves}));
  ASSERT_EQ(host.received.size(), 1u);
  EXPECT_EQ(host.received[0].unreached, std::vector<uint32_t>{0});
  EXPECT_FALSE(host.received[0].gradients[0].defined());
  EXPECT_TRUE(walk.finished());
  EXPECT_EQ(walk.take_gradients().size(), 1u);
}

}  // namespace
}  // namespace rehearsal
