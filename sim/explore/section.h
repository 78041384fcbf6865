#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/base/trace.h"
#include "sim/explore/guide.h"
#include "sim/world/cluster_parts.h"

namespace rehearsal::sim::explore {

// The part of a run that a Guide decides: whatever heads its chain may be next, however late, and
// so may each fault that has not happened. Timers do not happen: heartbeats, deadlines and
// acknowledgements that ride on nothing come after it. It ends when nothing else can happen. How
// many frames are lost with a link is the Guide's choice, too. After a crash each other worker
// gives the dead one up, sooner or later.
class Section final : private Chooser, private Trace {
 public:
  // `parts` hears of this section's events as a trace; see `trace`. All outlive it.
  Section(std::vector<Transition> faults, Guide& guide)
      : faults_(std::move(faults)), guide_(guide) {}

  // To be among the traces of the cluster.
  [[nodiscard]] Trace& trace() { return *this; }

  // Runs the section. False if the guide stopped it.
  [[nodiscard]] bool run(ClusterParts& parts);

  // The steps that happened, in order.
  [[nodiscard]] const std::vector<Transition>& steps() const { return steps_; }

 private:
  std::optional<uint64_t> choose(const Key& key, uint64_t n) override;
  void on_event(const Event& event) override;

  [[nodiscard]] std::vector<Candidate> candidates();
  [[nodiscard]] std::vector<size_t> causes_of(uint64_t serial) const;
  void happen(const Candidate& candidate);
  void happen_fault(const Transition& fault);

  struct Fault {
    Transition transition;
    std::vector<size_t> causes;
  };

  const std::vector<Transition> faults_;
  Guide& guide_;
  ClusterParts* parts_ = nullptr;
  std::vector<Fault> to_come_;
  std::vector<Transition> steps_;
  std::vector<uint64_t> first_serials_;  // by step: what it scheduled begins here
  std::map<std::tuple<WorkerId, WorkerId, uint64_t>, size_t> sent_;  // by frame: the step
};

}  // namespace rehearsal::sim::explore
