#include "sim/shrinking.h"

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
