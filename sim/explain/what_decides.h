#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/explain/critical_pair.h"

namespace rehearsal::sim {

// The decision that makes one run fail and one beside it hold.
struct Decider {
  std::string words;
  bool fails_with_it = true;  // the run that holds lacks it, or has less of it
  bool says_where = true;     // it names a message, a link or a worker, not a number of the run
};

// Finds out why a run fails: for two events by their order, if the runs beside it that hold show
// such two; otherwise for the decisions without which it holds. Where these say nothing about the
// place, the one where such a run parts from it is told.
class WhatDecides {
 public:
  explicit WhatDecides(const Chronicle& failing) : failing_(failing) {}

  void add(Decider decider);

  // `near` is the failing run or another that fails; `holding` differs from it in this only.
  void compare(const Chronicle& near, const Chronicle& holding, const Decider& decider);

  // Sets the critical pair or the notes. Nothing was added: neither.
  void tell(Subject& subject) const;

 private:
  const Chronicle& failing_;
  std::optional<CriticalPair> pair_;     // decides
  std::optional<CriticalPair> parting_;  // does not
  std::vector<Decider> deciders_;
};

}  // namespace rehearsal::sim
