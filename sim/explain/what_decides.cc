#include "sim/explain/what_decides.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rehearsal::sim {
namespace {

constexpr size_t kDecisionsTold = 3;

using Lines = std::vector<std::string>;

Lines lines_of_parting(const Chronicle& failing, const CriticalPair& parting) {
  const Moment& first = failing.moments.at(parting.first);
  return {"no two events alone decide by their order; one that holds parts from it at " +
              place_of(failing, first) + ":",
          "  it fails: it " + text_of(failing, first), "  it holds: it " + parting.second_text};
}

// Those that say where something happens come first.
Lines lines_of_deciders(std::vector<Decider> deciders) {
  std::ranges::stable_partition(deciders, &Decider::says_where);
  Lines lines = {"no two events alone decide by their order; without any of these it holds:"};
  for (size_t i = 0; i < std::min(deciders.size(), kDecisionsTold); ++i)
    lines.push_back("  " + deciders[i].words);
  if (deciders.size() > kDecisionsTold)
    lines.push_back("  and " + std::to_string(deciders.size() - kDecisionsTold) + " more");
  return lines;
}

}  // namespace

void WhatDecides::add(Decider decider) { deciders_.push_back(std::move(decider)); }

void WhatDecides::compare(const Chronicle& near, const Chronicle& holding, const Decider& decider) {
  auto pair = critical_pair(near, holding, decider.words);
  if (pair) pair = same_pair_in(failing_, *pair, near);
  if (!pair) return;
  std::optional<CriticalPair>& best = pair->decides ? pair_ : parting_;
  if (!best || is_better(failing_, *pair, *best)) best = std::move(pair);
}

void WhatDecides::tell(Subject& subject) const {
  subject.critical = pair_;
  if (pair_ || deciders_.empty()) return;
  std::vector<Decider> needed;
  std::ranges::copy_if(deciders_, std::back_inserter(needed), &Decider::fails_with_it);
  const bool says_where = std::ranges::any_of(needed, &Decider::says_where);
  if (!says_where && parting_)
    subject.notes = lines_of_parting(failing_, *parting_);
  else if (needed.empty())
    subject.notes = {"another order of events holds, but no two events alone decide by theirs"};
  else
    subject.notes = lines_of_deciders(std::move(needed));
}

}  // namespace rehearsal::sim
