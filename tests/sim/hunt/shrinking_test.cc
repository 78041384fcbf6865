#include "sim/hunt/shrinking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace rehearsal::sim {
namespace {

Override choice(DecisionKind kind, uint64_t number, uint64_t value) {
  return {.key = {.kind = kind, .number = number}, .value = value};
}

std::vector<Override> many_choices() {
  std::vector<Override> choices;
  for (uint64_t i = 0; i < 500; ++i) choices.push_back(choice(DecisionKind::latency, i, 1000 + i));
  for (uint64_t i = 0; i < 100; ++i) choices.push_back(choice(DecisionKind::cut, i, 900'000));
  for (uint64_t i = 0; i < 300; ++i) choices.push_back(choice(DecisionKind::resume, i, 77));
  return choices;
}

uint64_t value_in(const std::vector<Override>& choices, DecisionKind kind, uint64_t number) {
  for (const Override& given : choices)
    if (given.key.kind == kind && given.key.number == number) return given.value;
  return 0;
}

TEST(Shrinking, LeavesExactlyWhatTheFailureNeedsWithTheLeastValues) {
  // Needs: latency 17 of 500 or more, cut 3, and cut 90 of 800,000 or more.
  uint64_t runs = 0;
  const ShrinkTrial trial{.fails =
                              [&runs](const std::vector<Override>& choices) {
                                ++runs;
                                return value_in(choices, DecisionKind::latency, 17) >= 500 &&
                                       value_in(choices, DecisionKind::cut, 3) > 0 &&
                                       value_in(choices, DecisionKind::cut, 90) >= 800'000;
                              },
                          .may_go_on = [] { return true; }};
  const std::vector<Override> left = shrink_choices(many_choices(), trial);
  ASSERT_EQ(left.size(), 3u);
  EXPECT_EQ(value_in(left, DecisionKind::latency, 17), 500u);
  EXPECT_EQ(value_in(left, DecisionKind::cut, 3), 1u);
  EXPECT_EQ(value_in(left, DecisionKind::cut, 90), 800'000u);
  EXPECT_LT(runs, 400u);
}

TEST(Shrinking, AFailureThatNeedsNoChoiceLosesAll) {
  const ShrinkTrial trial{.fails = [](const std::vector<Override>&) { return true; },
                          .may_go_on = [] { return true; }};
  EXPECT_TRUE(shrink_choices(many_choices(), trial).empty());
}

TEST(Shrinking, ChoicesThatOnlyCountTogetherStayTogether) {
  // Any ten cuts fail, fewer do not: no single removal below ten helps.
  const ShrinkTrial trial{.fails =
                              [](const std::vector<Override>& choices) {
                                return std::count_if(choices.begin(), choices.end(),
                                                     [](const Override& given) {
                                                       return given.key.kind == DecisionKind::cut;
                                                     }) >= 10;
                              },
                          .may_go_on = [] { return true; }};
  EXPECT_EQ(shrink_choices(many_choices(), trial).size(), 10u);
}

Override hold(uint32_t worker, uint64_t number, uint64_t value) {
  return {.key = {.kind = DecisionKind::hold, .subject = {WorkerId{worker}, 0}, .number = number},
          .value = value};
}

uint64_t held_back(const std::vector<Override>& choices, uint32_t worker) {
  uint64_t sum = 0;
  for (const Override& given : choices)
    if (given.key.kind == DecisionKind::hold && given.key.subject.worker.value == worker)
      sum += given.value;
  return sum;
}

TEST(Shrinking, OneLongWaitTakesThePlaceOfManyShortOnes) {
  // Goal: a chain that a strategy holds back again and again is held back once.
  // Method: the first worker's chain must wait for 30 others and the second's for 7; none of their
  // 6 and 3 waits can go alone.
  const ShrinkTrial trial{.fails =
                              [](const std::vector<Override>& choices) {
                                return held_back(choices, 0) >= 30 && held_back(choices, 1) >= 7;
                              },
                          .may_go_on = [] { return true; }};
  std::vector<Override> choices;
  for (uint64_t i = 0; i < 6; ++i) choices.push_back(hold(0, i, 5));
  for (uint64_t i = 0; i < 3; ++i) choices.push_back(hold(1, i, i + 2));
  choices.back().value = 2;
  const std::vector<Override> left = shrink_choices(choices, trial);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(held_back(left, 0), 30u);
  EXPECT_EQ(held_back(left, 1), 7u);
}

TEST(Shrinking, AWaitTakesThePlaceOfOneOfAnotherChain) {
  // Goal: where two chains wait, one that waits longer may do. Method: ten steps, whoever waits.
  const ShrinkTrial trial{.fails =
                              [](const std::vector<Override>& choices) {
                                return held_back(choices, 0) + held_back(choices, 1) >= 10;
                              },
                          .may_go_on = [] { return true; }};
  const std::vector<Override> left = shrink_choices({hold(0, 4, 6), hold(1, 2, 4)}, trial);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].value, 10u);
}

TEST(Shrinking, StopsWhenTimeIsUpWithAListThatStillFails) {
  uint64_t runs = 0;
  const auto fails = [](const std::vector<Override>& choices) {
    return value_in(choices, DecisionKind::latency, 17) >= 500 &&
           value_in(choices, DecisionKind::cut, 90) > 0;
  };
  const ShrinkTrial trial{.fails =
                              [&](const std::vector<Override>& choices) {
                                ++runs;
                                return fails(choices);
                              },
                          .may_go_on = [&runs] { return runs < 12; }};
  const std::vector<Override> left = shrink_choices(many_choices(), trial);
  EXPECT_TRUE(fails(left));
  EXPECT_LT(left.size(), many_choices().size());
  EXPECT_LE(runs, 12u);
}

}  // namespace
}  // namespace rehearsal::sim
