#pragma once

#include <cstdint>
#include <optional>

#include "core/api/leaf_gradients.h"
#include "core/base/mutants.h"
#include "core/optim/optimizer_orders.h"

namespace rehearsal {

// The sum of the gradients of several contexts, at one owner, until a step uses it. A term counts
// only once a later order says that all owners have it: so that none has a term that another lacks.
class AccumulatedGradients {
 public:
  // `mutants` outlives it.
  explicit AccumulatedGradients(const Mutants& mutants) : mutants_(mutants) {}

  // The terms that count for this order are added up, all others are dropped.
  void settle(const OrderName& order);

  // The gradients, which are nobody else's, are the term of this order, which does not count yet.
  void keep_term(const OrderName& order, LeafGradients gradients);

  // The sum has been used.
  void forget() { sum_ = {}; }

  // Of the terms that count, in the order in which they came.
  [[nodiscard]] const LeafGradients& sum() const { return sum_; }

 private:
  struct Term {
    uint64_t number = 0;
    LeafGradients gradients;
  };

  const Mutants& mutants_;
  uint64_t since_ = 0;
  LeafGradients sum_;
  std::optional<Term> term_;
};

}  // namespace rehearsal
