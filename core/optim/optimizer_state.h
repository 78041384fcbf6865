#pragma once

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/distributed_optimizer.h"
#include "core/optim/group_options.h"
#include "core/optim/local_optimizer.h"

namespace rehearsal {

// The parameters of one owner.
struct OwnerShare {
  WorkerInfo owner;
  RRef<LocalOptimizer> optimizer;
  std::vector<size_t> positions;  // of its parameters among all
  std::vector<size_t> groups;     // that it has parameters of
  std::vector<std::string> sent;  // the options of each of these; empty: unknown
};

struct DistributedOptimizer::State {
  State(const Calls& calls, const std::vector<ParameterGroup>& given,
        const torch::optim::OptimizerOptions& defaults, const OptimizerKind& its_kind);
  // The owners' parts go with the references to them.
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Makes the owners' parts.
  void create(const Calls& calls, const std::vector<ParameterGroup>& given,
              const OptimizerSettings& common, const OwnKind* own);

  // A new order, after which the last step cannot be repeated.
  OrderName next_order(const AutogradContext* context);
  void end_accumulation();
  // Whether contexts have been accumulated for the next step.
  [[nodiscard]] bool has_sum() const { return last_term > since; }
  // Throws std::logic_error if gradients are asked for that are not those of the next step.
  void check_source(const AutogradContext* context) const;

  // The options of all groups, as bytes. Throws std::logic_error if there are other groups.
  [[nodiscard]] std::vector<std::string> options_now() const;

  // Starts one call at each of these owners, and waits for all.
  template <class T, class Start>
  std::vector<Result<T>> ask(const std::vector<size_t>& owners, const AutogradContext* context,
                             Start start) const {
    const Calls& calls = context == nullptr ? worker : *context;
    std::vector<Future<T>> futures;
    for (const size_t owner : owners) futures.push_back(start(calls, shares[owner]));
    std::vector<Result<T>> answers;
    for (Future<T>& future : futures) answers.push_back(future.result());
    return answers;
  }
  // The values of all owners; if one is an error, throws one with every owner's outcome.
  template <class T, class Start>
  std::vector<T> ask_all(const std::string& what, const AutogradContext* context,
                         Start start) const {
    std::vector<size_t> owners(shares.size());
    std::iota(owners.begin(), owners.end(), 0);
    std::vector<T> values;
    std::vector<MaybeError> errors;
    for (Result<T>& answer : ask<T>(owners, context, start)) {
      errors.push_back(answer.ok() ? MaybeError() : MaybeError(answer.error()));
      if (answer.ok()) values.push_back(std::move(answer).value());
    }
    throw_if_any(what, errors);
    return values;
  }
  void throw_if_any(const std::string& what, const std::vector<MaybeError>& errors) const;

  // Of a step at one owner. The error that its part could not be made with is that of each step.
  [[nodiscard]] MaybeError outcome(const Status& answer) const;
  // The last step at these owners, told in the reports.
  void step_at(const std::vector<size_t>& owners, const AutogradContext* context);
  // Those owners whose report is an error that have not applied the last step, by their own word.
  std::vector<size_t> owners_left(const AutogradContext* context);
  void throw_unless_stepped() const;

  Calls worker;  // recorded in nothing
  const Mutants mutants;
  const OptimizerKind& kind;
  GroupOptions groups;
  const size_t group_count;
  std::vector<OwnerShare> shares;  // by owner, in rank order
  size_t parameter_count = 0;
  bool allows_no_gradients = false;

  uint64_t number = 0;     // of the last order
  uint64_t since = 0;      // the order after which terms are accumulated
  uint64_t last_term = 0;  // the last one that all owners have; up to `since`: none

  struct Step {
    OrderName order;
    std::optional<AutogradContextId> context;
    std::vector<std::string> options;  // of all groups
  };
  std::optional<Step> step;  // the last order, if it was one
  std::vector<OwnerReport> reports;
};

}  // namespace rehearsal
