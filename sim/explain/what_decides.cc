#include "sim/explain/what_decides.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rehearsal::sim {
namespace {

constexpr size_t kDecisionsTold = 3;

}  // namespace

void WhatDecides::add(Decider decider) { deciders_.push_back(std::move(decider)); }

void WhatDecides::compare(const Chronicle& near, const Chronicle& holding, const Decider& decider) {
  auto pair = critical_pair(near, holding, decider.words);
  if (!pair || !pair->decides) return;
  pair = same_pair_in(failing_, *pair, near);
  if (pair && (!pair_ || is_better(failing_, *pair, *pair_))) pair_ = std::move(pair);
}

void WhatDecides::tell(Subject& subject) const {
  subject.critical = pair_;
  if (pair_ || deciders_.empty()) return;
  std::vector<Decider> needed;
  std::ranges::copy_if(deciders_, std::back_inserter(needed), &Decider::fails_with_it);
  if (needed.empty()) {
    subject.notes = {"another order of events holds, but no two events alone decide by theirs"};
    return;
  }
  std::ranges::stable_partition(needed, &Decider::says_where);
  subject.notes = {"no two events alone decide by their order; without any of these it holds:"};
  for (size_t i = 0; i < std::min(needed.size(), kDecisionsTold); ++i)
    subject.notes.push_back("  " + needed[i].words);
  if (needed.size() > kDecisionsTold)
    subject.notes.push_back("  and " + std::to_string(needed.size() - kDecisionsTold) + " more");
}

}  // namespace rehearsal::sim
