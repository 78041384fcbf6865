#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tests/core/autograd/walk_support.h"

// Note [Canonical sums] in core/autograd/graph_plan.h.
namespace rehearsal {
namespace {

using testing::leaf;
using testing::maker;
using testing::RecordingHost;
using testing::root_of;
using testing::route;

// Contributions whose sum shows in which order they were added: float addition of these is far from
// associative, and each order gives another digit string.
constexpr float kTerms[] = {1e8F, 3.F, -1e8F, 7.F, 0.3F};

float sum_in_order(const std::vector<size_t>& order) {
  float sum = kTerms[order[0]];
  for (size_t i = 1; i < order.size(); ++i) sum += kTerms[order[i]];
  return sum;
}

TEST(CanonicalSum, GradientsOfSendFunctionsSumByMessageIdInEveryOrderOfArrival) {
  // Goal: the bits do not depend on which gradient came first. Method: five messages of one tensor,
  // delivered in all 120 orders, with the walk run after each and only at the end.
  const at::Tensor x = leaf({1});
  std::vector<std::shared_ptr<SendRpcBackward>> sends;
  for (uint64_t i = 0; i < 5; ++i) sends.push_back(SendRpcBackward::make(route(i), {x}));
  const float expected = sum_in_order({4, 3, 2, 1, 0});
  std::vector<size_t> order{0, 1, 2, 3, 4};
  std::set<float> other_sums;
  do {
    for (const bool eager : {true, false}) {
      RecordingHost host;
      WalkScope scope;
      scope.sends = {sends[2], sends[0], sends[4], sends[1], sends[3]};
      scope.retain_graph = true;
      GraphWalk walk(std::move(scope), host);
      for (const size_t i : order) {
        walk.deliver(*sends[i], {torch::tensor({kTerms[i]})});
        if (eager) walk.run();
      }
      walk.run();
      ASSERT_TRUE(walk.finished());
      const auto gradients = walk.take_gradients();
      ASSERT_EQ(gradients.at(0).second.gradient.item<float>(), expected);
    }
    other_sums.insert(sum_in_order(order));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_GT(other_sums.size(), 3u) << "the terms would not have shown a wrong order";
}

TEST(CanonicalSum, MessagesOfDifferentExecutionsSumByPathBeforeOrdinal) {
  // Goal: the whole causal id decides, not the ordinal alone. Method: two paths.
  const at::Tensor x = leaf({1});
  const std::vector<std::shared_ptr<SendRpcBackward>> sends{
      SendRpcBackward::make(route(/*ordinal=*/0, /*path=*/8), {x}),
      SendRpcBackward::make(route(/*ordinal=*/9, /*path=*/3), {x}),
      SendRpcBackward::make(route(/*ordinal=*/1, /*path=*/8), {x})};
  RecordingHost host;
  WalkScope scope;
  scope.sends = sends;
  GraphWalk walk(std::move(scope), host);
  for (size_t i = 0; i < 3; ++i) walk.deliver(*sends[i], {torch::tensor({kTerms[i]})});
  walk.run();
  EXPECT_EQ(walk.take_gradients().at(0).second.gradient.item<float>(), sum_in_order({2, 0, 1}));
}

TEST(CanonicalSum, NodesSumByTheExecutionThatMadeThemWhateverTheScheduleWas) {
  // Goal: the schedule of executions changes no bit. Method: three executions each use one leaf, in
  // all six orders; with makers noted all sums are equal, without (the control) they are not.
  std::vector<size_t> schedule{0, 1, 2};
  std::set<float> noted;
  std::set<float> unknown;
  do {
    const at::Tensor x = leaf({1});
    std::vector<WalkRoot> roots(3);
    NodeMakers makers;
    for (const size_t execution : schedule) {
      const SequencePoint from = SequencePoint::here();
      roots[execution] = root_of((x * kTerms[execution]).sum());
      makers.note(maker(execution), from, SequencePoint::here());
    }
    for (const bool know : {true, false}) {
      WalkScope scope;
      scope.roots = roots;
      scope.retain_graph = true;
      if (know) scope.makers = makers.table();
      (know ? noted : unknown).insert(testing::walk_all(std::move(scope)).find(x).item<float>());
    }
  } while (std::next_permutation(schedule.begin(), schedule.end()));
  EXPECT_EQ(noted, std::set<float>{sum_in_order({2, 1, 0})});
  EXPECT_GT(unknown.size(), 1u) << "the terms would not have shown a wrong order";
}

TEST(CanonicalSum, OneExecutionSumsByDescendingNumberAlsoWhenItParkedBetween) {
  // Goal: within an execution the engine's order holds. Method: two executions take turns.
  const at::Tensor x = leaf({1});
  NodeMakers makers;
  std::vector<WalkRoot> roots;
  for (size_t i = 0; i < 4; ++i) {
    const SequencePoint from = SequencePoint::here();
    roots.push_back(root_of((x * kTerms[i]).sum()));
    makers.note(maker(i % 2), from, SequencePoint::here());
  }
  WalkScope scope;
  scope.roots = roots;
  scope.makers = makers.table();
  EXPECT_EQ(testing::walk_all(std::move(scope)).find(x).item<float>(), sum_in_order({3, 1, 2, 0}));
}

TEST(CanonicalSum, AnotherThreadsNumbersDoNotDecide) {
  // Goal: numbers are compared within one execution only. Method: an older execution on a thread
  // whose numbers are far ahead, beside nodes of unknown maker.
  const at::Tensor x = leaf({1});
  NodeMakers makers;
  std::vector<WalkRoot> roots(3);
  roots[2] = root_of((x * kTerms[2]).sum());
  SequencePoint from = SequencePoint::here();
  roots[1] = root_of((x * kTerms[1]).sum());
  makers.note(maker(1), from, SequencePoint::here());
  std::thread([&] {
    for (int i = 0; i < 1000; ++i) (void)(x * 2);
    from = SequencePoint::here();
    roots[0] = root_of((x * kTerms[0]).sum());
  }).join();
  makers.note(maker(0), from, {from.thread, from.next + 2});
  WalkScope scope;
  scope.roots = roots;
  scope.makers = makers.table();
  EXPECT_EQ(testing::walk_all(std::move(scope)).find(x).item<float>(), sum_in_order({1, 0, 2}));
}

TEST(CanonicalSum, RootsComeBeforeMessagesAndMessagesBeforeNodes) {
  // Goal: the classes of contributions to one slot. Method: one of each, the send function last.
  const at::Tensor x = leaf({1});
  const at::Tensor y = x * 1;
  const auto send = SendRpcBackward::make(route(0), {y});
  WalkScope scope;
  scope.roots = {root_of((y * kTerms[0]).sum()), root_of(y, torch::tensor({kTerms[1]})),
                 root_of(y, torch::tensor({kTerms[2]}))};
  scope.sends = {send};
  RecordingHost host;
  GraphWalk walk(std::move(scope), host);
  walk.run();
  EXPECT_FALSE(walk.finished());
  walk.deliver(*send, {torch::tensor({kTerms[3]})});
  walk.run();
  EXPECT_EQ(walk.take_gradients().at(0).second.gradient.item<float>(), sum_in_order({1, 2, 3, 0}));
}

TEST(CanonicalSum, AnUndefinedContributionKeepsItsPlaceOnly) {
  // Goal: an undefined gradient neither stops nor changes a sum. Method: the middle of three.
  const at::Tensor x = leaf({1});
  std::vector<std::shared_ptr<SendRpcBackward>> sends;
  for (uint64_t i = 0; i < 3; ++i) sends.push_back(SendRpcBackward::make(route(i), {x}));
  RecordingHost host;
  WalkScope scope;
  scope.sends = sends;
  GraphWalk walk(std::move(scope), host);
  walk.deliver(*sends[0], {torch::tensor({kTerms[0]})});
  walk.deliver(*sends[1], {at::Tensor()});
  walk.run();
  walk.deliver(*sends[2], {torch::tensor({kTerms[2]})});
  walk.run();
  EXPECT_EQ(walk.take_gradients().at(0).second.gradient.item<float>(), sum_in_order({2, 0}));
}

TEST(CanonicalSum, OneMessageWithATensorTwiceSumsByItsPlaceInTheMessage) {
  // Goal: several outputs of one node into one slot. Method: a message of one tensor three times.
  const at::Tensor x = leaf({1});
  const auto send = SendRpcBackward::make(route(0), {x, x, x});
  RecordingHost host;
  WalkScope scope;
  scope.sends = {send};
  GraphWalk walk(std::move(scope), host);
  walk.deliver(
      *send, {torch::tensor({kTerms[0]}), torch::tensor({kTerms[1]}), torch::tensor({kTerms[2]})});
  walk.run();
  EXPECT_EQ(walk.take_gradients().at(0).second.gradient.item<float>(), sum_in_order({0, 1, 2}));
}

}  // namespace
}  // namespace rehearsal
