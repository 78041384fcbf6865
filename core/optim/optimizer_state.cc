#include "core/optim/optimizer_state.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace rehearsal {
namespace {

std::vector<torch::optim::OptimizerParamGroup> without_parameters(
    const std::vector<ParameterGroup>& given, const torch::optim::OptimizerOptions& defaults) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const ParameterGroup& group : given)
    groups.emplace_back(std::vector<at::Tensor>(),
                        group.options == nullptr ? defaults.clone() : group.options->clone());
  return groups;
}

}  // namespace

torch::Tensor GroupOptions::step(LossClosure) {
  throw std::logic_error(
      "these are the options of a DistributedOptimizer: it steps itself, with a context");
}

DistributedOptimizer::State::State(const Calls& calls, const std::vector<ParameterGroup>& given,
                                   const torch::optim::OptimizerOptions& defaults,
                                   const OptimizerKind& its_kind)
    : worker(calls.caller(), calls.references()),
      mutants(calls.references()->mutants()),
      kind(its_kind),
      groups(without_parameters(given, defaults), defaults.clone()),
      group_count(given.size()) {}

DistributedOptimizer::State::~State() {
  if (!mutants.on(Mutant::optimizer_never_released)) return;
  for (const OwnerShare& share : shares)
    static_cast<void>(new RRef<LocalOptimizer>(share.optimizer));  // Nobody ever deletes it.
}

void DistributedOptimizer::State::create(const Calls& calls,
                                         const std::vector<ParameterGroup>& given,
                                         const OptimizerSettings& common, const OwnKind* own) {
  struct Place {
    size_t position;
    size_t group;
    const RRef<at::Tensor>* parameter;
  };
  std::map<WorkerId, std::vector<Place>> places;
  for (size_t group = 0; group < given.size(); ++group)
    for (const RRef<at::Tensor>& parameter : given[group].parameters)
      places[parameter.owner().id].push_back({parameter_count++, group, &parameter});
  if (places.empty()) throw std::invalid_argument("an optimizer without parameters");

  const std::vector<std::string> options = options_now();
  for (const auto& [id, of_owner] : places) {
    OwnerShare share{.owner = of_owner.front().parameter->owner(), .optimizer = {}};
    OptimizerSettings settings = common;
    for (const Place& place : of_owner) {
      if (share.groups.empty() || share.groups.back() != place.group) {
        share.groups.push_back(place.group);
        share.sent.push_back(options[place.group]);
        settings.groups.push_back({.options = {place.group, options[place.group]}});
      }
      settings.groups.back().parameters.push_back(*place.parameter);
      share.positions.push_back(place.position);
    }
    if (own != nullptr) settings.own.push_back(own->at(share.owner));
    share.optimizer = calls.remote<LocalOptimizer>(share.owner, settings);
    shares.push_back(std::move(share));
  }
}

OrderName DistributedOptimizer::State::next_order(const AutogradContext* context) {
  step.reset();
  return {.number = ++number,
          .since = since,
          .last_term = last_term,
          .uses_context = context != nullptr,
          .allows_no_gradients = allows_no_gradients};
}

void DistributedOptimizer::State::end_accumulation() { since = last_term = number; }

void DistributedOptimizer::State::check_source(const AutogradContext* context) const {
  if (context == nullptr && !has_sum())
    throw std::logic_error("there are no accumulated gradients: give a context");
  if (context != nullptr && has_sum())
    throw std::logic_error(
        "gradients were accumulated: accumulate this context's too, and then give none");
}

std::vector<std::string> DistributedOptimizer::State::options_now() const {
  if (groups.param_groups().size() != group_count)
    throw std::logic_error("a DistributedOptimizer has the groups that it was made with");
  std::vector<std::string> options;
  for (const torch::optim::OptimizerParamGroup& group : groups.param_groups())
    options.push_back(kind.write(group.options()));
  return options;
}

void DistributedOptimizer::State::throw_if_any(const std::string& what,
                                               const std::vector<MaybeError>& errors) const {
  MaybeError failure;
  std::string outcomes;
  for (size_t i = 0; i < errors.size(); ++i) {
    outcomes += (i == 0 ? "'" : ", '") + shares[i].owner.name + "' ";
    if (!errors[i]) {
      outcomes += "done";
      continue;
    }
    outcomes += "failed (" + std::string(name_of(errors[i]->kind)) + ": " + errors[i]->text + ")";
    if (!failure) failure = errors[i];
  }
  if (!failure) return;
  failure->text = what + ": " + outcomes;
  throw RpcError(std::move(*failure));
}

// ---- steps --------------------------------------------------------------------------

MaybeError DistributedOptimizer::State::outcome(const Status& answer) const {
  if (answer.ok()) return {};
  const bool threw = answer.error().kind == ErrorKind::remote_exception;
  if (threw && mutants.on(Mutant::constructor_error_swallowed)) return {};
  return answer.error();
}

void DistributedOptimizer::State::step_at(const std::vector<size_t>& owners,
                                          const AutogradContext* context) {
  const auto changed = [this](const OwnerShare& share) {
    std::vector<SentOptions> options;
    for (size_t i = 0; i < share.groups.size(); ++i)
      if (const std::string& now = step->options[share.groups[i]]; share.sent[i] != now)
        options.push_back({share.groups[i], now});
    return options;
  };
  const auto answers = ask<Unit>(owners, context, [&](const Calls& calls, const OwnerShare& share) {
    return calls.rpc_async(share.optimizer, &LocalOptimizer::step, step->order, changed(share));
  });
  const bool known = mutants.on(Mutant::lost_options_count_as_sent);
  for (size_t i = 0; i < owners.size(); ++i) {
    OwnerShare& share = shares[owners[i]];
    const Status& answer = answers[i];
    reports[owners[i]].error = outcome(answer);
    for (size_t j = 0; j < share.groups.size(); ++j)
      share.sent[j] = answer.ok() || known ? step->options[share.groups[j]] : std::string();
  }
}

std::vector<size_t> DistributedOptimizer::State::owners_left(const AutogradContext* context) {
  std::vector<size_t> asked;
  for (size_t i = 0; i < reports.size(); ++i)
    if (reports[i].error) asked.push_back(i);
  if (mutants.on(Mutant::step_repeated_unasked)) return asked;
  const bool enough = mutants.on(Mutant::unanswered_step_counts);
  const auto states =
      ask<StepState>(asked, context, [&](const Calls& calls, const OwnerShare& share) {
        return calls.rpc_async(share.optimizer, &LocalOptimizer::step_state, step->order);
      });
  std::vector<size_t> left;
  for (size_t i = 0; i < asked.size(); ++i) {
    OwnerReport& report = reports[asked[i]];
    const Result<StepState>& state = states[i];
    if (!state.ok()) {
      report.error = state.error();
    } else if (state.value() == StepState::applied || enough) {
      report.error.reset();
      report.applied_before = true;
    } else if (state.value() == StepState::halfway) {
      report.error =
          Error{.kind = ErrorKind::remote_exception,
                .text =
                    "the optimizer threw halfway, and some of its parameters may have changed: "
                    "it cannot repeat the step",
                .worker = report.owner.name,
                .function = "step"};
    } else {
      left.push_back(asked[i]);
    }
  }
  return left;
}

void DistributedOptimizer::State::throw_unless_stepped() const {
  std::vector<MaybeError> errors;
  for (const OwnerReport& report : reports) errors.push_back(report.error);
  throw_if_any("the optimizer's step", errors);
}

}  // namespace rehearsal
