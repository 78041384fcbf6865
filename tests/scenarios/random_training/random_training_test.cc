// The drawn trainings: that they consist of all there is, and that a wrong bit is told.
#include "scenarios/random_training/random_training.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "scenarios/random_training/alone.h"
#include "scenarios/random_training/plan.h"
#include "scenarios/random_training/wrong_result.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/effort.h"

namespace rehearsal::random_training {
namespace {

constexpr Size kSize{.trainers = 3, .owners = 3, .layers = 4, .steps = 4};

TEST(RandomTraining, AllThatCanBeDrawnIs) {
  std::set<Origin> origins;
  std::set<Form> forms;
  std::set<PassForm> passes;
  std::set<OptimizerName> optimizers;
  std::set<Bound> bounds;
  std::set<HeadForm> heads;
  std::map<std::string, int> happened;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Plan plan = draw_plan(Seed{seed}, kSize);
    optimizers.insert(plan.optimizer);
    happened["is grouped"] += plan.is_grouped;
    happened["is scaled"] += plan.scale.has_value();
    happened["has the default scale"] += plan.scale == kDefaultScale;
    happened["moves"] += plan.moves_after.has_value();
    happened["goes beyond what is kept"] += plan.overrun > 0;
    for (const Layer& layer : plan.layers) {
      origins.insert(layer.origin);
      happened["has a layer at the trainer"] += layer.owners[0] == trainer_name(0);
    }
    for (const Step& step : plan.steps) {
      bounds.insert(step.bound);
      heads.insert(step.heads.begin(), step.heads.end());
      happened["overflows"] += step.overflows;
      happened["lowers the rate"] += step.lowers_rate;
      happened["is in haste"] += step.patience > 0;
      happened["saves"] += step.saves;
      happened["has one pass"] += step.passes.size() == 1;
      happened["has three"] += step.passes.size() == 3;
      happened["uses a layer twice"] +=
          std::set(step.chain.begin(), step.chain.end()).size() < step.chain.size();
      for (const Pass& pass : step.passes) {
        passes.insert(pass.form);
        forms.insert(pass.forms.begin(), pass.forms.end());
      }
    }
  }
  EXPECT_EQ(origins.size(), static_cast<size_t>(Origin::sequential) + 1);
  EXPECT_EQ(forms.size(), static_cast<size_t>(Form::layer) + 1);
  EXPECT_EQ(passes.size(), static_cast<size_t>(PassForm::served) + 1);
  EXPECT_EQ(optimizers.size(), static_cast<size_t>(OptimizerName::own) + 1);
  EXPECT_EQ(bounds.size(), static_cast<size_t>(Bound::value) + 1);
  EXPECT_EQ(heads.size(), static_cast<size_t>(HeadForm::served) + 1);
  for (const auto& [what, times] : happened) EXPECT_GT(times, 10) << what;
}

// Gradients are unscaled and bounded as a whole, a layer takes part in every step, and none more
// than twice: the order of more contributions would decide bits.
TEST(RandomTraining, APlanAsksForNothingThatIsRefused) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Plan plan = draw_plan(Seed{seed}, kSize);
    for (const Step& step : plan.steps) {
      EXPECT_FALSE(step.chain.empty());
      for (const size_t layer : step.chain)
        EXPECT_LE(std::count(step.chain.begin(), step.chain.end(), layer), 2);
      if (step.passes.size() == 1) continue;
      EXPECT_TRUE(step.adds_up || (!plan.scale && step.bound == Bound::none)) << seed;
    }
    if (plan.moves_after) EXPECT_TRUE(plan.steps.at(*plan.moves_after - 1).saves);
  }
}

// Each step changes what one process has: else nothing would show that one was lost.
TEST(RandomTraining, EveryStepOfOneProcessChangesSomething) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Plan plan = draw_plan(Seed{seed}, kSize);
    const Alone alone = train_alone(plan);
    ASSERT_EQ(alone.steps.size(), plan.steps.size());
    for (size_t i = 1; i < alone.steps.size(); ++i) {
      EXPECT_FALSE(alone.steps[i].head[0].equal(alone.steps[i - 1].head[0])) << seed;
      bool changed = false;
      for (size_t j = 0; j < alone.steps[i].chain.size(); ++j)
        changed |= !alone.steps[i].chain[j].equal(alone.steps[i - 1].chain[j]);
      EXPECT_NE(changed, plan.steps[i].overflows) << seed;
    }
  }
}

TEST(RandomTraining, AWrongBitIsTold) {
  const at::Tensor right = at::ones({2});
  at::Tensor wrong = right.clone();
  wrong[1] = std::nextafter(1.0F, 2.0F);
  EXPECT_NO_THROW(expect_same({right}, {right.clone()}, "a tensor"));
  EXPECT_THROW(expect_same({wrong}, {right}, "a tensor"), WrongResult);
  EXPECT_THROW(expect_same({right, right}, {right}, "two"), WrongResult);
}

TEST(RandomTraining, HoldsUnderManySeeds) {
  const Scenario scenario = random_training::scenario();
  EXPECT_TRUE(sim::holds_for_seeds(tries(30), [&](Seed seed) {
    Reporter reporter;
    const Options options = scenario.options.parse({}, "tiny");
    const Program program = scenario.program({options, seed, reporter});
    sim::Cluster(seed, program, {.faults = sim::FaultLevel::hostile}).run();
  }));
}

}  // namespace
}  // namespace rehearsal::random_training
