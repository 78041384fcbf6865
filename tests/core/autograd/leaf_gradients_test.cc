#include "core/api/leaf_gradients.h"

#include <gtest/gtest.h>

#include "tests/core/autograd/walk_support.h"

namespace rehearsal {
namespace {

using testing::leaf;
using testing::same_bits;

TEST(LeafGradients, AddsUpForEachVariableInTheOrderOfFirstGradients) {
  // Goal: sums by variable, an order without addresses, `.grad` untouched. Method: three additions.
  const at::Tensor a = leaf({1, 2});
  const at::Tensor b = leaf({1, 2});
  LeafGradients gradients;
  EXPECT_TRUE(gradients.empty());
  gradients.accumulate({b, torch::tensor({1.F, 1.F})});
  gradients.accumulate({a, torch::tensor({2.F, 2.F})});
  gradients.accumulate({b, torch::tensor({3.F, 5.F})});
  ASSERT_EQ(gradients.all().size(), 2u);
  EXPECT_TRUE(gradients.all()[0].variable.is_same(b));
  EXPECT_TRUE(gradients.all()[0].gradient.equal(torch::tensor({4.F, 6.F})));
  EXPECT_TRUE(gradients.find(a).equal(torch::tensor({2.F, 2.F})));
  EXPECT_FALSE(gradients.find(leaf({1})).defined());
  EXPECT_FALSE(a.grad().defined());
}

TEST(LeafGradients, TakesAGradientOverOnlyIfNobodyElseHoldsIt) {
  // Goal: what a user or a hook still holds is not changed by later sums. Method: keep the first
  // gradient, add a second.
  const at::Tensor a = leaf({1, 2});
  const at::Tensor held = torch::tensor({1.F, 1.F});
  LeafGradients gradients;
  gradients.accumulate({a, held});
  gradients.accumulate({a, torch::tensor({5.F, 5.F})});
  EXPECT_TRUE(held.equal(torch::tensor({1.F, 1.F})));
  EXPECT_TRUE(gradients.find(a).equal(torch::tensor({6.F, 6.F})));

  const at::Tensor b = leaf({1, 2});
  at::Tensor alone = torch::tensor({1.F, 1.F});
  const void* const storage = alone.const_data_ptr();
  LeafGradient given{b, std::move(alone)};
  gradients.accumulate(std::move(given));
  EXPECT_EQ(gradients.find(b).const_data_ptr(), storage);
}

TEST(LeafGradients, SumsSparseAndDenseGradientsAsDotGradDoes) {
  // Goal: every mixture has the bits of `.grad`. Method: both orders beside AccumulateGrad itself.
  const at::Tensor dense = torch::randn({4, 2});
  const at::Tensor sparse = torch::randn({4, 2}).to_sparse(1);
  for (const auto& [first, second] :
       {std::pair(dense, sparse), std::pair(sparse, dense), std::pair(sparse, sparse)}) {
    const at::Tensor ours = torch::zeros({4, 2}).requires_grad_();
    at::Tensor engines = torch::zeros({4, 2}).requires_grad_();
    LeafGradients gradients;
    gradients.accumulate({ours, first.clone()});
    gradients.accumulate({ours, second.clone()});
    engines.backward(first.clone());
    engines.backward(second.clone());
    EXPECT_TRUE(same_bits(gradients.find(ours), engines.grad()));
  }
}

}  // namespace
}  // namespace rehearsal
