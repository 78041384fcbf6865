#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/core/autograd/random_graph.h"
#include "tests/core/autograd/walk_support.h"
#include "tests/effort.h"

namespace rehearsal {
namespace {

using testing::RandomGraph;
using testing::root_of;
using testing::same_bits;
using testing::walk_all;

WalkScope scope_of(const RandomGraph& graph, bool retain_graph) {
  WalkScope scope;
  for (size_t i = 0; i < graph.roots.size(); ++i)
    scope.roots.push_back(root_of(graph.roots[i], graph.root_gradients[i]));
  scope.retain_graph = retain_graph;
  return scope;
}

std::vector<at::Tensor> take_retained(RandomGraph& graph) {
  std::vector<at::Tensor> gradients;
  for (at::Tensor& tensor : graph.retained) {
    gradients.push_back(tensor.grad().defined() ? tensor.grad().clone() : at::Tensor());
    tensor.mutable_grad() = at::Tensor();
  }
  return gradients;
}

TEST(GraphWalkProperty, GradientsOfRandomGraphsHaveTheBitsOfTorchAutogradGrad) {
  // Goal: a walk gives the bits of LibTorch's engine. Method: both on the same random graphs,
  // either first, so that neither disturbs the graph for the other.
  at::set_num_threads(1);
  for (uint64_t seed = 0; seed < tries(500); ++seed) {
    RandomGraph graph(seed);
    LeafGradients walked;
    if (seed % 2 == 0) walked = walk_all(scope_of(graph, true));
    const auto expected = torch::autograd::grad(graph.roots, graph.leaves, graph.root_gradients,
                                                /*retain_graph=*/true, false, true);
    if (seed % 2 == 1) walked = walk_all(scope_of(graph, false));
    for (size_t i = 0; i < graph.leaves.size(); ++i)
      ASSERT_TRUE(same_bits(walked.find(graph.leaves[i]), expected[i]))
          << "seed " << seed << " leaf " << i << "\n"
          << walked.find(graph.leaves[i]) << "\n"
          << expected[i];
  }
}

TEST(GraphWalkProperty, HooksRunInTheEnginesOrderAndLayoutsAreThoseOfDotGrad) {
  // Goal: everything that a user can observe of backward() but `.grad` itself is the same. Method:
  // compare hook calls, retained gradients, and the strides of collected gradients with `.grad`.
  at::set_num_threads(1);
  for (uint64_t seed = 0; seed < tries(200); ++seed) {
    RandomGraph graph(seed);
    const LeafGradients walked = walk_all(scope_of(graph, true));
    for (const at::Tensor& leaf : graph.leaves) ASSERT_FALSE(leaf.grad().defined());
    const auto walked_calls = std::exchange(graph.hook_calls, {});
    const uint64_t walked_leaf_calls = std::exchange(graph.leaf_hook_calls, 0);
    const auto walked_retained = take_retained(graph);

    torch::autograd::backward(graph.roots, graph.root_gradients);
    ASSERT_EQ(walked_calls, graph.hook_calls) << "seed " << seed;
    ASSERT_EQ(walked_leaf_calls, graph.leaf_hook_calls) << "seed " << seed;
    const auto retained = take_retained(graph);
    for (size_t i = 0; i < retained.size(); ++i)
      ASSERT_TRUE(same_bits(walked_retained[i], retained[i])) << "seed " << seed;
    for (const at::Tensor& leaf : graph.leaves) {
      const at::Tensor gradient = walked.find(leaf);
      ASSERT_TRUE(same_bits(gradient, leaf.grad())) << "seed " << seed;
      if (!gradient.defined() || gradient.is_sparse()) continue;
      ASSERT_EQ(gradient.strides(), leaf.grad().strides()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace rehearsal
