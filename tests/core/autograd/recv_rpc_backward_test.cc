#include "core/autograd/recv_rpc_backward.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/autograd/walk_support.h"

namespace rehearsal {
namespace {

using testing::route;

TEST(RecvRpcBackward, BecomesTheHistoryOfTheTensorsInMessageOrder) {
  // Goal: each received tensor is one input, and no leaf. Method: two tensors.
  const at::Tensor a = torch::ones({2});
  const at::Tensor b = torch::ones({3});
  const SequencePoint before = SequencePoint::here();
  const auto receive = RecvRpcBackward::make(route(4), {a, b});
  EXPECT_EQ(SequencePoint::here().next, before.next);
  EXPECT_EQ(receive->num_inputs(), 2u);
  EXPECT_EQ(a.grad_fn(), receive);
  EXPECT_EQ(b.output_nr(), 1);
  EXPECT_TRUE(a.requires_grad());
  EXPECT_FALSE(a.is_leaf());
  EXPECT_EQ(receive->route().message, route(4).message);
}

TEST(RecvRpcBackward, TheFunctionLivesAsLongAsATensorOfTheMessage) {
  // Goal: the graph owns its receive functions. Method: drop all but one tensor.
  std::weak_ptr<RecvRpcBackward> watched;
  at::Tensor kept;
  {
    const at::Tensor a = torch::ones({2});
    kept = torch::ones({3});
    watched = RecvRpcBackward::make(route(4), {a, kept});
  }
  EXPECT_FALSE(watched.expired());
  kept.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(RecvRpcBackward, LibTorchsOwnBackwardSaysWhatToCallInstead) {
  // Goal: a clear error. Method: backward() on a sum of a received tensor.
  const at::Tensor a = torch::ones({2});
  RecvRpcBackward::make(route(4), {a});
  try {
    (a * 2).sum().backward();
    FAIL() << "backward() passed a receive function";
  } catch (const RpcError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::autograd);
    EXPECT_NE(error.error().text.find("call the context's backward() instead"), std::string::npos);
  }
}

TEST(RecvRpcBackwardDeathTest, RefusesTensorsThatHaveAHistory) {
  // Goal: a received tensor's history is never overwritten. Method: attach twice.
  const at::Tensor a = torch::ones({2});
  RecvRpcBackward::make(route(4), {a});
  EXPECT_DEATH(RecvRpcBackward::make(route(5), {a}), "requires_grad");
}

}  // namespace
}  // namespace rehearsal
