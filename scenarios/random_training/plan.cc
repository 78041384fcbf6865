#include "scenarios/random_training/plan.h"

#include <algorithm>

#include "scenarios/storm/dice.h"

namespace rehearsal::random_training {
namespace {

using storm::Dice;

template <class E>
E one_of(Dice& dice, E last) {
  return static_cast<E>(dice.draw(static_cast<uint64_t>(last) + 1));
}

int64_t seed_from(Dice& dice) { return static_cast<int64_t>(dice.draw(1'000'000)); }

Pass draw_pass(size_t length, Dice& dice) {
  Pass pass{.forms = {},
            .form = one_of(dice, PassForm::served),
            .is_recorded = dice.happens(50),
            .is_fast = dice.happens(30),
            .word = dice.word()};
  for (size_t place = 0; place < length; ++place) pass.forms.push_back(one_of(dice, Form::layer));
  return pass;
}

Step draw_step(const Plan& plan, Dice& dice) {
  const size_t layers = plan.layers.size();
  Step step;
  for (size_t layer = 0; layer < layers; ++layer) {
    if (dice.happens(80)) step.chain.push_back(layer);
    step.is_evaluating.push_back(dice.happens(20));
  }
  if (step.chain.empty()) step.chain.push_back(dice.draw(layers));
  if (dice.happens(30)) step.chain.push_back(step.chain[dice.draw(step.chain.size())]);
  for (uint64_t pass = 0, count = 1 + dice.draw(3); pass < count; ++pass)
    step.passes.push_back(draw_pass(step.chain.size(), dice));
  // Gradients are unscaled as a whole.
  step.adds_up = dice.happens(50) || (plan.scale && step.passes.size() > 1);
  // The sum of some contexts can be bounded by itself only, not with that of the last one.
  if (step.adds_up || step.passes.size() == 1) step.bound = one_of(dice, Bound::value);
  step.overflows = plan.scale && dice.happens(20);
  step.lowers_rate = dice.happens(30);
  step.saves = dice.happens(30);
  if (dice.happens(30)) step.patience = static_cast<int64_t>(1 + dice.draw(5000));
  for (size_t trainer = 0; trainer < plan.trainers; ++trainer)
    step.heads.push_back(one_of(dice, HeadForm::served));
  return step;
}

}  // namespace

Plan draw_plan(Seed seed, const Size& size) {
  Dice dice(seed, hash_text("training"));
  Plan plan;
  plan.trainers = size.trainers;
  plan.owners = size.owners;
  plan.optimizer = one_of(dice, OptimizerName::own);
  plan.is_grouped = dice.happens(40);
  if (dice.happens(50))
    plan.scale =
        dice.happens(20) ? kDefaultScale : static_cast<double>(uint64_t{1} << dice.draw(11));
  if (size.steps > 1 && dice.happens(60)) plan.moves_after = 1 + dice.draw(size.steps - 1);
  plan.bucket_bytes = uint64_t{1} << dice.draw(10);
  plan.head_seed = seed_from(dice);
  if (plan.moves_after) plan.overrun = dice.draw(3);
  // Some are at the first trainer itself.
  const auto draw_owner = [&] {
    return dice.happens(15) ? trainer_name(0) : owner_name(dice.draw(size.owners));
  };
  for (size_t layer = 0; layer < size.layers; ++layer)
    plan.layers.push_back({.origin = one_of(dice, Origin::sequential),
                           .seed = seed_from(dice),
                           .owners = {draw_owner(), draw_owner()}});
  for (size_t step = 0; step < size.steps; ++step) plan.steps.push_back(draw_step(plan, dice));
  if (plan.moves_after) plan.steps[*plan.moves_after - 1].saves = true;
  return plan;
}

std::string trainer_name(size_t number) { return "trainer" + std::to_string(number); }
std::string owner_name(size_t number) { return "owner" + std::to_string(number); }

std::vector<std::string> trainers_of(const Plan& plan) {
  std::vector<std::string> names;
  for (size_t trainer = 0; trainer < plan.trainers; ++trainer)
    names.push_back(trainer_name(trainer));
  return names;
}

}  // namespace rehearsal::random_training
