#include "command_line/hunt_learning.h"

#include <gtest/gtest.h>

#include "tests/command_line/toy.h"

namespace rehearsal::command_line {
namespace {

constexpr size_t kLag = Lagging<int>::kLag;

class Learning : public testing::Test {
 protected:
  RunSettings asked(uint64_t seed, const std::string& strategy) const {
    RunSettings settings;
    settings.scenario = &scenarios_.front();
    settings.options = settings.scenario->options.parse({}, "tiny");
    settings.seed = Seed{seed};
    settings.strategy = strategy;
    return settings;
  }
  // For a run that may know of all that was taught.
  RunSettings improve(const RunSettings& asked) {
    return learning_.improve(kLag + taught_ - 1, asked);
  }
  void teach(const RunSettings& settings, const RunOutcome& outcome) {
    learning_.learn(taught_++, settings, outcome);
  }
  static RunOutcome outcome(uint64_t steps, std::vector<uint32_t> features) {
    RunOutcome outcome;
    outcome.ok = true;
    outcome.steps = steps;
    outcome.draws = 1000;
    outcome.features = std::move(features);
    return outcome;
  }

  const std::vector<Scenario> scenarios_ = toy::scenarios();
  HuntLearning learning_;
  size_t taught_ = 0;
};

TEST_F(Learning, TheMostChoicesOfARunBecomeK) {
  EXPECT_EQ(improve(asked(1, "pct")).strategy, "pct");
  teach(asked(1, "pct"), outcome(300, {}));
  teach(asked(2, "pct"), outcome(480, {}));
  teach(asked(3, "pct"), outcome(20, {}));
  EXPECT_EQ(improve(asked(4, "pct")).strategy, "pct:k=480");
  EXPECT_EQ(improve(asked(4, "delays")).strategy, "delays:k=480");
  EXPECT_EQ(improve(asked(4, "pos")).strategy, "pos");
  EXPECT_EQ(improve(asked(4, "pct:k=7")).strategy, "pct:k=7");
}

TEST_F(Learning, ARunKnowsOfThoseBeforeItsLagAndOfNoOther) {
  // Goal: what a run is given does not depend on what is done early. Method: results out of order.
  learning_.learn(1, asked(2, "pct"), outcome(480, {}));
  EXPECT_TRUE(learning_.ready_for(kLag - 1));
  EXPECT_FALSE(learning_.ready_for(kLag));
  EXPECT_EQ(learning_.improve(kLag - 1, asked(4, "pct")).strategy, "pct");
  learning_.learn(0, asked(1, "pct"), outcome(300, {}));
  EXPECT_TRUE(learning_.ready_for(kLag + 1));
  EXPECT_FALSE(learning_.ready_for(kLag + 2));
  EXPECT_EQ(learning_.improve(kLag, asked(4, "pct")).strategy, "pct:k=300");
  EXPECT_EQ(learning_.improve(kLag + 1, asked(4, "pct")).strategy, "pct:k=480");
}

TEST_F(Learning, AGuidedRunGoesOnFromOneThatShowedSomethingNew) {
  // Goal: the parent's seed, strategy and redraws, and one more redraw of about five choices.
  const RunSettings alone = improve(asked(9, "guided"));
  EXPECT_EQ(alone.seed.value, 9u);
  EXPECT_EQ(strategy_label(alone), "");
  teach(asked(1, "pos"), outcome(300, {5, 6}));
  teach(asked(2, "pct:k=3"), outcome(300, {5}));
  const RunSettings child = improve(asked(9, "guided"));
  EXPECT_EQ(child.seed.value, 1u);
  EXPECT_EQ(child.strategy, "pos");
  ASSERT_EQ(child.redraws.size(), 1u);
  EXPECT_TRUE(child.redraws[0].ends_with("/200")) << child.redraws[0];
  EXPECT_EQ(strategy_label(child), "guided");
  EXPECT_EQ(improve(asked(9, "guided")).redraws, child.redraws);
  EXPECT_NE(improve(asked(10, "guided")).redraws, child.redraws);
}

TEST_F(Learning, AParentHasSoManyChildrenAndThenNoMore) {
  teach(asked(1, "pos"), outcome(300, {5}));
  int children = 0;
  for (uint64_t seed = 10; seed < 60; ++seed)
    children += improve(asked(seed, "guided")).redraws.empty() ? 0 : 1;
  EXPECT_EQ(children, 16);
}

TEST_F(Learning, AChildThatShowsSomethingNewIsAParent) {
  teach(asked(1, "pos"), outcome(300, {5}));
  const RunSettings child = improve(asked(9, "guided"));
  teach(child, outcome(300, {5, 7}));
  size_t most = 0;
  for (uint64_t seed = 10; seed < 40; ++seed)
    most = std::max(most, improve(asked(seed, "guided")).redraws.size());
  EXPECT_EQ(most, 2u);
}

}  // namespace
}  // namespace rehearsal::command_line
