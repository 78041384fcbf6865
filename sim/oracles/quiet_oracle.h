#pragma once

#include "sim/oracle.h"

namespace rehearsal::sim {

// An Oracle that ignores everything: the base of those that look at some of it only.
class QuietOracle : public Oracle {
 public:
  void on_event(const Observation&, Findings&) override {}
  void on_crash(const LifeView&) override {}
  void check(const ClusterView&, Findings&) override {}
  void at_end(const ClusterView&, Findings&) override {}
};

// Whether this life's main ran to its end without an error and did not leave at once, before the
// others: then nothing may be left of it.
[[nodiscard]] inline bool ended_well(const LifeView& life) {
  const bool left_at_once = life.node != nullptr && life.node->left_at_once();
  return !life.crashed && life.result != nullptr && life.result->ok() && !left_at_once;
}

}  // namespace rehearsal::sim
