#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/failing_calls.h"
#include "sim/oracle.h"

namespace rehearsal::sim {

// The callers of a run that try again what fails, and fail again.
class Retries {
 public:
  struct InVain {
    std::string caller;
    // "trainer has called `one` at 'ps' 10,000 times since 37.5 s; each failed at once: peer_lost,
    // 'ps' crashed at 1.2 s"
    std::string text;
    bool answered = false;  // by errors of the callee: they may end when something else happens
  };

  // `names`: of all workers, in rank order.
  explicit Retries(std::vector<std::string> names) : names_(std::move(names)) {}

  // The streak that has grown by this event; null: none has. Is told of calls that are made and
  // that complete, and of workers that are fenced.
  const FailingCalls::Streak* on_event(const Observation& seen);

  // Up to now trying again was right: what everybody waits for was still to come.
  void forgive();

  // A caller that has tried too often since, and for the first time at `begun_by` or earlier. Where
  // calls fail at once, 10,000 are too many; a callee that answers each with an error may have its
  // reasons for longer.
  [[nodiscard]] std::optional<InVain> in_vain(const ClusterView& cluster, Instant begun_by) const;

  // The caller that has tried again most often, and still did at `since` or later.
  [[nodiscard]] std::optional<InVain> busiest(const ClusterView& cluster, Instant since) const;

  // The caller that has just made this streak grow, while the run goes on.
  [[nodiscard]] InVain told(const Observation& seen, const FailingCalls::Streak& streak) const;

 private:
  struct Caller {
    net_fake::LifeId life;
    FailingCalls calls{Duration{}};
    std::map<WorkerId, std::string> fenced = {};  // why
  };

  [[nodiscard]] Caller& caller_of(const net_fake::LifeId& life);
  [[nodiscard]] std::string name_of(WorkerId worker) const;
  [[nodiscard]] std::string cause_of(const Caller& caller, WorkerId peer,
                                     const ClusterView* cluster) const;
  // `cluster`: null while it runs.
  [[nodiscard]] InVain told(const Caller& caller, const FailingCalls::Streak& streak,
                            const ClusterView* cluster) const;

  const std::vector<std::string> names_;
  std::vector<std::optional<Caller>> callers_;  // by worker: its present life
};

}  // namespace rehearsal::sim
