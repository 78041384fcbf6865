#include "scenarios/random_training/chain_training.h"

#include <chrono>
#include <limits>

#include "scenarios/random_training/optimizers.h"
#include "scenarios/random_training/wrong_result.h"

namespace rehearsal::random_training {
namespace {

DistributedGradScaler scaler_of(const Plan& plan) {
  if (plan.scale == kDefaultScale) return {};
  return DistributedGradScaler({.init_scale = plan.scale.value_or(1),
                                .growth_interval = 2,
                                .enabled = plan.scale.has_value()});
}

BackwardOptions options_of(const Pass& pass) {
  return {.mode = pass.is_fast ? PassMode::fast : PassMode::smart};
}

// A loss that is elsewhere, without a trace in any context.
double value_of(const RRef<at::Tensor>& loss) {
  const at::NoGradGuard no_grad;
  return loss.to_here().item<double>();
}

}  // namespace

ChainTraining::ChainTraining(const Worker& worker, const Plan& plan, const Alone& alone,
                             size_t half)
    : worker_(worker),
      plan_(plan),
      alone_(alone),
      chain_(worker, plan, half),
      rounds_(worker.remote(owner_name(0), &rounds_there)),
      optimizer_(chain_.optimizer()),
      scheduler_(optimizer_.groups(), 1, kLowering),
      scaler_(scaler_of(plan)) {
  optimizer_.allow_owners_without_gradients();
}

void ChainTraining::add_to(DistributedCheckpoint& checkpoint) {
  chain_.add_to(checkpoint);
  checkpoint.optimizer("optimizer", optimizer_).scheduler("rate", scheduler_);
  checkpoint.tensor("rounds", rounds_);
  if (scaler_.is_enabled()) checkpoint.scaler("scaler", scaler_);
}

void ChainTraining::step(size_t number, const Head& head) {
  const Step& step = plan_.steps[number];
  const Alone::Step& alone = alone_.steps[number];
  chain_.prepare(step);
  std::vector<AutogradContext> contexts;
  for (size_t i = 0; i < step.passes.size(); ++i) {
    const AutogradContext& context = contexts.emplace_back(worker_.autograd_context());
    expect(i == 0 || context.id() != contexts[i - 1].id(), "two contexts of one name");
    if (step.passes[i].is_recorded) {
      const auto recording = context.record();
      run_pass(context, step, step.passes[i], alone.passes[i], head);
    } else {
      run_pass(context, step, step.passes[i], alone.passes[i], head);
    }
  }
  accumulate(contexts, step);
  const Context context = step.adds_up ? nullptr : &contexts.back();
  bound(step, context, alone.norm);
  expect(apply(step, context) != step.overflows, "a step that was made, or not, wrongly");
  if (!step.overflows) expect_reports();
  if (step.lowers_rate) scheduler_.step();
  chain_.expect_values(alone.chain);
  expect(worker_.rpc_sync(owner_name(0), &count_round, rounds_) == static_cast<int64_t>(number + 1),
         "a tensor that was changed in place another number of times");
}

void ChainTraining::look_around() const {
  chain_.expect_pipeline(drawn_input(static_cast<uint64_t>(plan_.head_seed)));
  for (size_t owner = 0; owner < plan_.owners; ++owner)
    expect(worker_.rpc_sync(owner_name(owner), &own_gradient, 3.0) == 6,
           "another gradient of a graph that is at one worker");
}

double ChainTraining::factor_of(const Step& step) const {
  return step.overflows ? std::numeric_limits<double>::infinity() : scaler_.get_scale();
}

void ChainTraining::run_pass(const AutogradContext& context, const Step& step, const Pass& pass,
                             const Alone::Pass& alone, const Head& head) {
  const at::Tensor output =
      head.forward(chain_.output(context, step, pass, drawn_input(pass.word)));
  const double factor = factor_of(step);
  const double loss = run_backward(context, pass, output, factor);
  chain_.expect_gradients(context, step);
  const LeafGradients gradients = context.get_gradients();
  if (step.overflows) return;
  expect(loss == alone.loss, "a loss that is not that of one process");
  std::vector<at::Tensor> expected;
  for (const at::Tensor& gradient : alone.of_head) expected.push_back(gradient * factor);
  expect_same({gradients.find(head.weight), gradients.find(head.bias)}, expected,
              "the head's gradients");
}

// The loss, without the factor.
double ChainTraining::run_backward(const AutogradContext& context, const Pass& pass,
                                   const at::Tensor& output, double factor) const {
  const BackwardOptions options = options_of(pass);
  const at::Tensor target = drawn_target(pass.word);
  const std::string owner = owner_name(pass.word % plan_.owners);
  const auto there = [&](int64_t number) {
    return context.remote(owner, &loss_there, output, target, number, factor);
  };
  if (pass.form == PassForm::served)
    return context.rpc_sync(owner, &pass_there, output, target, factor);
  if (pass.form == PassForm::at_owner || pass.form == PassForm::by_reference) {
    const RRef<at::Tensor> root = there(2);
    if (pass.form == PassForm::at_owner && !pass.is_fast)
      context.backward_at(root, /*retain_graph=*/pass.is_recorded);
    else if (pass.form == PassForm::at_owner)
      context.backward_at(root, options);
    else
      root.backward(context, options);
    return value_of(root) / factor;
  }
  if (pass.form == PassForm::of_several) {
    const std::vector<RRef<at::Tensor>> roots{there(0), there(1)};
    context.backward_at(roots, options);
    return static_cast<double>(static_cast<float>(value_of(roots[0]) / factor) +
                               static_cast<float>(value_of(roots[1]) / factor));
  }
  const std::vector<at::Tensor> losses = losses_of(output, target);
  const at::Tensor loss = losses[0] + losses[1];
  const auto scaled = [&](const at::Tensor& root) {
    return factor == scaler_.get_scale() ? scaler_.scale(root) : root * factor;
  };
  if (pass.form == PassForm::two_roots) {
    context.backward({scaled(losses[0]), scaled(losses[1])}, options);
    return loss.item<double>();
  }
  const at::Tensor root = scaled(loss);
  if (pass.form == PassForm::twice) context.backward({root}, /*retain_graph=*/true);
  context.backward({root}, options);
  return loss.item<double>();
}

void ChainTraining::accumulate(const std::vector<AutogradContext>& contexts,
                               const Step& step) const {
  const size_t terms = contexts.size() - (step.adds_up ? 0 : 1);
  if (terms > 0 && step.passes.front().word % 3 == 0) {
    optimizer_.accumulate(contexts.front());
    optimizer_.drop_accumulated();
  }
  for (size_t term = 0; term < terms; ++term) optimizer_.accumulate(contexts[term]);
}

void ChainTraining::bound(const Step& step, Context context, double norm) {
  if (step.bound == Bound::none) return;
  if (scaler_.is_enabled())
    context != nullptr ? scaler_.unscale_(optimizer_, *context) : scaler_.unscale_(optimizer_);
  if (step.bound == Bound::value) {
    context != nullptr ? optimizer_.clip_grad_value(*context, kValueMax)
                       : optimizer_.clip_grad_value(kValueMax);
    return;
  }
  const double found = context != nullptr ? optimizer_.clip_grad_norm(*context, kNormMax)
                                          : optimizer_.clip_grad_norm(kNormMax);
  expect(step.overflows || found == norm, "a norm that is not that of one process");
}

// Whether the owners have stepped.
bool ChainTraining::apply(const Step& step, Context context) {
  const bool stepped =
      step.patience > 0 ? apply_in_haste(step.patience, context) : attempt(context);
  if (!scaler_.is_enabled()) return stepped;
  scaler_.update();
  DistributedGradScaler taken_up = scaler_of(plan_);
  taken_up.load(scaler_.state());
  expect(taken_up.get_scale() == scaler_.get_scale(), "a scale that is not the one it was given");
  return stepped;
}

// With so little time that the answer of some owner may not come, and then again.
bool ChainTraining::apply_in_haste(int64_t patience, Context context) {
  const Duration usual = worker_.rpc_timeout();
  const Timeout as_before = usual == Duration::zero() ? Timeout::never() : Timeout(usual);
  worker_.set_default_timeout(std::chrono::microseconds(patience));
  try {
    const bool stepped = attempt(context);
    worker_.set_default_timeout(as_before);
    return stepped;
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::timeout) throw;
  }
  worker_.set_default_timeout(as_before);
  return attempt_again(context);
}

bool ChainTraining::attempt(Context context) {
  if (scaler_.is_enabled())
    return context != nullptr ? scaler_.step(optimizer_, *context) : scaler_.step(optimizer_);
  context != nullptr ? optimizer_.step(*context) : optimizer_.step();
  return true;
}

bool ChainTraining::attempt_again(Context context) {
  if (scaler_.is_enabled()) return attempt(context);
  context != nullptr ? optimizer_.retry_step(*context) : optimizer_.retry_step();
  return true;
}

void ChainTraining::expect_reports() const {
  std::optional<WorkerId> before;
  for (const OwnerReport& report : optimizer_.step_reports()) {
    expect(!report.error, "an owner that failed in a step that succeeded");
    expect(!before || *before < report.owner.id, "owners that are not in the order of their ranks");
    before = report.owner.id;
  }
  expect(before.has_value(), "a step of no owner");
}

}  // namespace rehearsal::random_training
