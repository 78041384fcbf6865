#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/optimizer_kind.h"
#include "core/api/rref.h"

// The messages between a DistributedOptimizer and its owners' parts.
namespace rehearsal {

// The options of one group. Groups are known by their position among all.
struct SentOptions {
  uint64_t group = 0;
  std::string bytes;
  friend void describe(SentOptions& options, auto&& fields) {
    fields(options.group, options.bytes);
  }
};

// An owner's parameters of one group.
struct SentGroup {
  SentOptions options;
  std::vector<RRef<at::Tensor>> parameters;
  friend void describe(SentGroup& group, auto&& fields) { fields(group.options, group.parameters); }
};

// All that an owner's part is made from.
struct OptimizerSettings {
  std::string kind;      // of LibTorch's; empty: `own`
  std::string defaults;  // options
  std::vector<SentGroup> groups;
  std::vector<RRef<OptimizerKindAt>> own;  // one at most
  friend void describe(OptimizerSettings& settings, auto&& fields) {
    fields(settings.kind, settings.defaults, settings.groups, settings.own);
  }
};

// The place of a call among those of its optimizer, which owners obey in this order only: one that
// was overtaken by a later one is void.
struct OrderName {
  uint64_t number = 0;
  uint64_t attempt = 0;  // at the same thing

  // The contexts that were accumulated for this step are those of the orders after `since`, up to
  // `last_term`; no others count.
  uint64_t since = 0;
  uint64_t last_term = 0;

  bool uses_context = true;  // that the call is recorded in
  bool allows_no_gradients = false;

  [[nodiscard]] std::pair<uint64_t, uint64_t> place() const { return {number, attempt}; }
  friend void describe(OrderName& order, auto&& fields) {
    fields(order.number, order.attempt, order.since, order.last_term, order.uses_context,
           order.allows_no_gradients);
  }
};

// How far a step has come at an owner.
enum class StepState : uint8_t {
  not_applied,
  applied,
  halfway,  // its optimizer threw: some parameters may have changed
};

}  // namespace rehearsal
