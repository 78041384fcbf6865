#include "scenarios/random_model/reference.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace rehearsal::random_model {
namespace {

at::Tensor full(double value) { return at::full({2, 3}, value, at::kDouble); }

// A parameter at worker 1 that is doubled at worker 2, and both are in the loss of two passes.
Model small_model() {
  Model model;
  model.workers = 3;
  model.nodes.push_back({.op = Operator::parameter, .worker = 1, .content = full(3)});
  model.nodes.push_back(
      {.op = Operator::add, .worker = 2, .inputs = {{.node = 0}, {.node = 0}}, .content = full(1)});
  model.nodes.push_back({.op = Operator::loss,
                         .worker = 0,
                         .inputs = {{.node = 0}, {.node = 1}},
                         .content = full(5)});
  model.passes = {{.losses = {2}, .retain_graph = true}, {.losses = {2}}};
  return model;
}

TEST(RandomModelReference, KnowsTheGradientAfterEachPass) {
  const Model model = small_model();
  const Reference reference(model);
  EXPECT_EQ(reference.difference(0, {at::Tensor()}), std::nullopt);
  EXPECT_EQ(reference.difference(1, {full(15)}), std::nullopt);
  EXPECT_EQ(reference.difference(2, {full(30)}), std::nullopt);
  EXPECT_EQ(reference.outputs(2).front().item<double>(), 6 * (5 * 3 + 5 * 6));
}

TEST(RandomModelReference, NamesNodeOperatorAndWorkerOfWhatIsMissingOrTwice) {
  // Goal: a wrong gradient says where to look. Method: gradients without one term and with one
  // more.
  const Model model = small_model();
  const Reference reference(model);
  EXPECT_EQ(reference.difference(1, {at::Tensor()}),
            "the gradient of node 0 (parameter, Double, at worker0) after 1 passes: there is none"
            "; node 1 (add, Double, at worker1) contributes [5, 5, 5, 5, 5, 5] in pass 0"
            "; node 1 (add, Double, at worker1) contributes [5, 5, 5, 5, 5, 5] in pass 0"
            "; node 2 (loss, Double, at leader) contributes [5, 5, 5, 5, 5, 5] in pass 0");
  const auto missing = reference.difference(1, {full(10)});
  ASSERT_TRUE(missing.has_value());
  EXPECT_TRUE(missing->ends_with(
      "; what node 1 (add, Double, at worker1) contributes in pass 0 is missing"))
      << *missing;
  const auto twice = reference.difference(1, {full(20)});
  ASSERT_TRUE(twice.has_value());
  EXPECT_TRUE(twice->ends_with(
      "; what node 1 (add, Double, at worker1) contributes in pass 0 has come twice"))
      << *twice;
}

}  // namespace
}  // namespace rehearsal::random_model
