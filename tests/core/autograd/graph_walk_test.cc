#include "core/autograd/graph_walk.h"

#include <gtest/gtest.h>

#include "tests/core/autograd/walk_support.h"

namespace rehearsal {
namespace {

using testing::leaf;
using testing::RecordingHost;
using testing::root_of;
using testing::route;
using testing::same_bits;
using testing::walk_all;

WalkScope scope_of(std::vector<WalkRoot> roots,
                   std::vector<std::shared_ptr<SendRpcBackward>> sends = {}) {
  WalkScope scope;
  scope.roots = std::move(roots);
  scope.sends = std::move(sends);
  return scope;
}

// A tensor as the peer receives it: the same values, a receive function as history.
at::Tensor received(const at::Tensor& sent, const GradientRoute& route) {
  at::Tensor copy = sent.detach().clone();
  RecvRpcBackward::make(route, {copy});
  return copy;
}

TEST(GraphWalk, GradientsThatCrossTwoWorkersHaveTheBitsOfOneGraph) {
  // Goal: send and receive functions join two graphs. Method: worker A sends, B answers, A uses the
  // answer; three walks by hand beside LibTorch's engine on the undivided graph.
  const at::Tensor x = torch::randn({4, 3}).requires_grad_();
  const at::Tensor w = torch::randn({3, 3}).requires_grad_();
  const auto first = [&] { return torch::mm(x, w).tanh(); };
  const auto second = [&](const at::Tensor& h) { return torch::mm(h, w).sigmoid(); };
  const auto loss = [](const at::Tensor& y) { return (y * y).sum(); };
  const auto expected = torch::autograd::grad({loss(second(first()))}, {x, w});

  const at::Tensor h = first();
  const auto a_sends = SendRpcBackward::make(route(0), {h});
  const at::Tensor h_at_b = received(h, route(0));
  const at::Tensor y = second(h_at_b);
  const auto b_sends = SendRpcBackward::make(route(1), {y});
  const at::Tensor y_at_a = received(y, route(1));

  RecordingHost host_a;
  GraphWalk walk_a(scope_of({root_of(loss(y_at_a))}, {a_sends}), host_a);
  walk_a.run();
  ASSERT_EQ(host_a.received.size(), 1u);
  EXPECT_EQ(host_a.received[0].function->route().message, route(1).message);
  EXPECT_FALSE(walk_a.finished());

  RecordingHost host_b;
  GraphWalk walk_b(scope_of({}, {b_sends}), host_b);
  EXPECT_FALSE(walk_b.step());
  walk_b.deliver(*b_sends, host_a.received[0].gradients);
  walk_b.run();
  EXPECT_TRUE(walk_b.finished());
  ASSERT_EQ(host_b.received.size(), 1u);

  walk_a.deliver(*a_sends, host_b.received[0].gradients);
  walk_a.run();
  EXPECT_TRUE(walk_a.finished());
  LeafGradients gradients;
  for (auto& [place, gradient] : walk_b.take_gradients()) gradients.accumulate(std::move(gradient));
  for (auto& [place, gradient] : walk_a.take_gradients()) gradients.accumulate(std::move(gradient));
  EXPECT_TRUE(same_bits(gradients.find(x), expected[0]));
  EXPECT_TRUE(same_bits(gradients.find(w), expected[1]));
}

TEST(GraphWalk, RestsAtEveryNodeAndReportsWhatItWaitsFor) {
  // Goal: stop and go on anywhere; the waiting send functions by name. Method: single steps.
  const at::Tensor x = leaf({1, 2});
  const at::Tensor y = x * 2;
  const auto early = SendRpcBackward::make(route(1), {y});
  const auto late = SendRpcBackward::make(route(2), {x, y});
  const auto stranger = SendRpcBackward::make(route(3), {y});
  RecordingHost host;
  GraphWalk walk(scope_of({root_of(y.sum())}, {early, late}), host);
  EXPECT_EQ(walk.waiting_sends(), (std::vector{late, early}));
  EXPECT_FALSE(walk.waits_for(*stranger));
  EXPECT_TRUE(walk.step());
  EXPECT_FALSE(walk.step()) << "y waits for both send functions";
  walk.deliver(*late, {torch::ones({2}), torch::ones({2})});
  EXPECT_FALSE(walk.waits_for(*late));
  EXPECT_TRUE(walk.step());
  EXPECT_FALSE(walk.step());
  EXPECT_EQ(walk.waiting_sends(), std::vector{early});
  EXPECT_TRUE(walk.take_gradients().empty());
  walk.deliver(*early, {torch::ones({2})});
  EXPECT_TRUE(walk.step());
  EXPECT_TRUE(walk.step());
  EXPECT_FALSE(walk.finished());
  EXPECT_TRUE(walk.step());
  EXPECT_TRUE(walk.finished());
  EXPECT_FALSE(walk.step());
  EXPECT_TRUE(walk.waiting_sends().empty());
  EXPECT_EQ(host.entered.size(), 5u);
  EXPECT_EQ(host.entered, host.left);
  const auto gradients = walk.take_gradients();
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_TRUE(gradients[0].second.gradient.equal(torch::full({2}, 7.F)));
}

TEST(GraphWalk, AReceiveFunctionGetsAllItsGradientsAtOnceUndefinedOnesIncluded) {
  // Goal: one hand-over for each message, in message order. Method: a message of three tensors, one
  // used twice, one not at all; its tensor hook runs too.
  std::vector<at::Tensor> tensors{torch::ones({2}), torch::ones({3}), torch::ones({2})};
  const auto receive = RecvRpcBackward::make(route(0), tensors);
  int hooks = 0;
  tensors[2].register_hook([&](const at::Tensor& gradient) {
    ++hooks;
    return gradient * 10;
  });
  RecordingHost host;
  GraphWalk walk(scope_of({root_of((tensors[0] * tensors[2] + tensors[0]).sum())}), host);
  walk.run();
  ASSERT_TRUE(walk.finished());
  ASSERT_EQ(host.received.size(), 1u);
  EXPECT_EQ(host.received[0].function, receive.get());
  const auto& gradients = host.received[0].gradients;
  ASSERT_EQ(gradients.size(), 3u);
  EXPECT_TRUE(gradients[0].equal(torch::full({2}, 2.F)));
  EXPECT_FALSE(gradients[1].defined());
  EXPECT_TRUE(gradients[2].equal(torch::full({2}, 10.F)));
  EXPECT_EQ(hooks, 1);
}

TEST(GraphWalk, AMessageWhoseGradientsAreAllUndefinedStillMovesTheWalkOn) {
  // Goal: undefined gradients travel like others, and an undefined leaf gradient is not collected.
  // Method: deliver nothing but undefined ones.
  const at::Tensor x = leaf({1});
  const at::Tensor y = received(torch::ones({1}), route(9));
  const auto send = SendRpcBackward::make(route(0), {x * 2, y * 2});
  RecordingHost host;
  GraphWalk walk(scope_of({}, {send}), host);
  walk.deliver(*send, {at::Tensor(), at::Tensor()});
  walk.run();
  EXPECT_TRUE(walk.finished());
  EXPECT_TRUE(walk.take_gradients().empty());
  ASSERT_EQ(host.received.size(), 1u);
  EXPECT_FALSE(host.received[0].gradients.at(0).defined());
}

TEST(GraphWalk, GradientsThatWaitedForAnUndecidedOneAddUpByTheRulesOfTheirPass) {
  // Goal: no graph is recorded for a sum unless the pass says so; LibTorch adds a sparse and a
  // dense gradient then only. Method: of three uses the last, whose gradient would be the first to
  // be added, is sent away and never gets one.
  const at::Tensor x = torch::ones({4, 2}).requires_grad_();
  const at::Tensor table = x * 1;
  const at::Tensor dense = table * 2;
  const at::Tensor sparse = torch::embedding(table, torch::tensor({1, 2}), -1, false, true);
  const auto send = SendRpcBackward::make(route(0), {table * 3});
  RecordingHost host;
  GraphWalk walk(scope_of({root_of(dense.sum() + sparse.sum())}, {send}), host);
  walk.run();
  EXPECT_FALSE(walk.finished());
  walk.find_live({});
  walk.drop_undecided();
  walk.run();
  ASSERT_TRUE(walk.finished());
  const auto gradients = walk.take_gradients();
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_TRUE(gradients[0].second.gradient.equal(
      torch::tensor({{2.F, 2.F}, {3.F, 3.F}, {3.F, 3.F}, {2.F, 2.F}})));
}

TEST(GraphWalk, GradientsThatDoNotFitWhatWasSentAreRefused) {
  // Goal: a broken peer cannot put wrong shapes or counts into the graph. Method: one of each.
  const at::Tensor y = leaf({1, 2}) * 2;
  const std::vector<std::vector<at::Tensor>> wrong{
      {torch::ones({3})}, {}, {torch::ones({2}), torch::ones({2})}};
  for (const auto& gradients : wrong) {
    const auto send = SendRpcBackward::make(route(0), {y});
    RecordingHost host;
    GraphWalk walk(scope_of({}, {send}), host);
    walk.deliver(*send, gradients);
    EXPECT_THROW(walk.run(), c10::Error);
    EXPECT_EQ(walk.evaluating(), send.get());
    EXPECT_EQ(host.entered, host.left);
  }
  RecordingHost host;
  EXPECT_THROW(GraphWalk(scope_of({root_of(y, torch::ones({3}))}), host), c10::Error);
}

TEST(GraphWalk, ReleasesTheGraphUnlessItIsRetained) {
  // Goal: `retain_graph` as in LibTorch. Method: a retained walk, a releasing one, a third.
  const at::Tensor x = leaf({1, 2});
  const at::Tensor root = (x * x).sum();
  for (const bool retain : {true, false}) {
    WalkScope scope = scope_of({root_of(root)});
    scope.retain_graph = retain;
    EXPECT_TRUE(walk_all(std::move(scope)).find(x).equal(torch::tensor({2.F, 4.F})));
  }
  RecordingHost host;
  GraphWalk again(scope_of({root_of(root)}), host);
  EXPECT_THROW(again.run(), c10::Error);
}

TEST(GraphWalk, AnExceptionOfAHookComesOutAndTheWalkCanBeDropped) {
  // Goal: the user's exception keeps its type, the gate is left. Method: a hook that throws.
  const at::Tensor x = leaf({1});
  const at::Tensor y = x * 2;
  y.register_hook([](const at::Tensor&) { throw std::domain_error("mine"); });
  RecordingHost host;
  GraphWalk walk(scope_of({root_of(y * 3)}), host);
  EXPECT_THROW(walk.run(), std::domain_error);
  EXPECT_EQ(walk.evaluating(), y.grad_fn().get());
  EXPECT_EQ(host.entered, host.left);
}

TEST(GraphWalk, RootsMayBeLeavesReceivedTensorsAndRepeated) {
  // Goal: every tensor that requires gradients can be a root. Method: all kinds together.
  const at::Tensor x = leaf({1});
  const at::Tensor y = received(torch::ones({1}), route(9));
  RecordingHost host;
  GraphWalk walk(scope_of({root_of(x), root_of(y), root_of(x, torch::tensor({2.F})), root_of(y)}),
                 host);
  walk.run();
  EXPECT_TRUE(walk.finished());
  EXPECT_EQ(walk.take_gradients().at(0).second.gradient.item<float>(), 3.F);
  EXPECT_EQ(host.received.at(0).gradients.at(0).item<float>(), 2.F);
}

TEST(GraphWalk, AnEmptyWalkIsFinished) {
  // Goal: a worker without roots and sends has nothing to do. Method: an empty scope.
  RecordingHost host;
  GraphWalk walk({}, host);
  EXPECT_TRUE(walk.finished());
  EXPECT_FALSE(walk.step());
}

TEST(GraphWalk, WalksAChainOfAHundredThousandNodesWithoutDeepRecursion) {
  // Goal: neither the walk nor the end of the graph recurses. Method: a long chain, dropped while
  // the walk is the last to hold it.
  const at::Tensor x = leaf({1});
  LeafGradients gradients;
  {
    at::Tensor y = x;
    for (int i = 0; i < 100'000; ++i) y = y + 1;
    WalkScope scope = scope_of({root_of(y)});
    y.reset();
    gradients = walk_all(std::move(scope));
  }
  EXPECT_EQ(gradients.find(x).item<float>(), 1.F);

  const at::Tensor sent = x * 1;
  at::Tensor last = sent;
  for (int i = 0; i < 100'000; ++i) last = last + 1;
  const auto send = SendRpcBackward::make(route(0), {last});
  last.reset();
}

TEST(GraphWalk, MemoryStaysFlatWhenManyUsesOfALeafAddUpInOrder) {
  // Goal: contributions in order are added as they come, not kept. Method: count the additions that
  // were made in place, by the storage of the first contribution.
  const at::Tensor x = torch::ones({64}).requires_grad_();
  at::Tensor y = torch::zeros({64});
  for (int i = 0; i < 50; ++i) y = y + x * 2;
  const GraphPlan plan({root_of(y)}, {}, MakerTable());
  GradientSlots slots(plan);
  uint32_t accumulator = 0;
  while (plan.nodes()[accumulator].role != NodeRole::leaf) ++accumulator;
  EXPECT_EQ(plan.nodes()[accumulator].dependencies, 50u);
  std::vector<PlannedEdge> edges;
  for (const PlannedEdge& edge : plan.edges())
    if (edge.node == accumulator) edges.push_back(edge);
  std::sort(edges.begin(), edges.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
  const at::NoGradGuard no_grad;
  const void* storage = nullptr;
  for (const PlannedEdge& edge : edges) {
    at::Tensor term = torch::ones({64});
    if (edge.rank == 0) storage = term.const_data_ptr();
    slots.add(edge, std::move(term), std::nullopt);
    EXPECT_EQ(slots.early_count(), 0u);
  }
  const at::Tensor sum = slots.take(accumulator, std::nullopt).at(0);
  EXPECT_EQ(sum.const_data_ptr(), storage);
  EXPECT_TRUE(sum.equal(torch::full({64}, 50.F)));
}

TEST(GraphWalkDeathTest, ASendFunctionGetsItsGradientsOnce) {
  // Goal: a second gradient is the pass's bug, which asks waits_for() first. Method: deliver twice.
  const auto send = SendRpcBackward::make(route(0), {leaf({1})});
  RecordingHost host;
  GraphWalk walk(scope_of({}, {send}), host);
  walk.deliver(*send, {torch::ones({1})});
  EXPECT_DEATH(walk.deliver(*send, {torch::ones({1})}), "waits_for");
}

}  // namespace
}  // namespace rehearsal
