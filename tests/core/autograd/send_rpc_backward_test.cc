#include "core/autograd/send_rpc_backward.h"

#include <gtest/gtest.h>

#include "tests/core/autograd/walk_support.h"

namespace rehearsal {
namespace {

using testing::leaf;
using testing::route;

TEST(SendRpcBackward, ItsOutputsAreTheTensorsThatRequireGradients) {
  // Goal: outputs in message order, the others skipped. Method: a message of five tensors.
  const at::Tensor a = leaf({1, 2});
  const at::Tensor b = a * 2;
  const auto send = SendRpcBackward::make(route(4), {torch::ones({2}), a, at::Tensor(), b, a});
  ASSERT_EQ(send->num_outputs(), 3u);
  EXPECT_EQ(send->next_edge(0), torch::autograd::impl::gradient_edge(a));
  EXPECT_EQ(send->next_edge(1), torch::autograd::impl::gradient_edge(b));
  EXPECT_EQ(send->next_edge(2), torch::autograd::impl::gradient_edge(a));
  EXPECT_EQ(send->route().message, route(4).message);
  EXPECT_EQ(send->route().peer, WorkerId{1});
  EXPECT_EQ(send->name(), "SendRpcBackward");
}

TEST(SendRpcBackward, MakingOneMovesNoNumbering) {
  // Goal: the numbers of a thread's nodes do not depend on what it sends. Method: peek around it.
  const at::Tensor a = leaf({1});
  const at::Tensor b = a * 2;
  const SequencePoint before = SequencePoint::here();
  const auto send = SendRpcBackward::make(route(1), {b});
  EXPECT_EQ(SequencePoint::here().next, before.next);
  EXPECT_EQ(send->sequence_nr(), SendRpcBackward::kSequenceNr);
}

TEST(SendRpcBackward, IsNeededOnlyWhereGradientsAreRecorded) {
  // Goal: no function for messages without gradients. Method: each reason alone.
  const at::Tensor a = leaf({1});
  EXPECT_TRUE(need_gradients({torch::ones({1}), a}));
  EXPECT_FALSE(need_gradients({torch::ones({1}), at::Tensor()}));
  EXPECT_FALSE(need_gradients({}));
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(need_gradients({a}));
}

TEST(SendRpcBackward, KeepsAViewsHistoryAfterItsBaseChanged) {
  // Goal: the edge is taken as for any consumer, also where LibTorch must first renew a view's
  // history. Method: change the base in place, send the view, walk.
  const at::Tensor a = leaf({1, 2, 3, 4});
  at::Tensor base = a.clone();
  const at::Tensor view = base.narrow(0, 1, 2);
  base.mul_(10);
  const auto send = SendRpcBackward::make(route(1), {view});
  testing::RecordingHost host;
  WalkScope scope;
  scope.sends = {send};
  GraphWalk walk(std::move(scope), host);
  walk.deliver(*send, {torch::tensor({1.F, 2.F})});
  walk.run();
  const auto gradients = walk.take_gradients();
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_TRUE(gradients[0].second.gradient.equal(torch::tensor({0.F, 10.F, 20.F, 0.F})));
}

TEST(SendRpcBackwardDeathTest, NeedsATensorThatRequiresGradients) {
  // Goal: a message without gradients makes none. Method: make one anyway.
  EXPECT_DEATH((void)SendRpcBackward::make(route(1), {torch::ones({1})}), "edges.empty");
}

}  // namespace
}  // namespace rehearsal
