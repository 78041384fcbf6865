#include "core/optim/accumulated_gradients.h"

#include <utility>

namespace rehearsal {

void AccumulatedGradients::settle(const OrderName& order) {
  if (order.since != since_ && !mutants_.on(Mutant::sum_outlives_step)) {
    since_ = order.since;
    sum_ = {};
    term_.reset();
  }
  if (!term_) return;
  if (term_->number <= order.last_term || mutants_.on(Mutant::failed_term_counts)) {
    for (const LeafGradient& one : term_->gradients.all()) sum_.accumulate(one);
  }
  term_.reset();
}

void AccumulatedGradients::keep_term(const OrderName& order, LeafGradients gradients) {
  term_ = Term{.number = order.number, .gradients = std::move(gradients)};
}

}  // namespace rehearsal
