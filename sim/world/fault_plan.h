#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net_fake/link_model.h"
#include "sim/cluster_options.h"
#include "sim/world/fault_classes.h"
#include "sim/world/machine_faults.h"
#include "sim/world/sim_runtime.h"

namespace rehearsal::sim {

// A crash that the seed has planned: before the `event`-th event of the worker, if it gets so far
// during the storm.
struct PlannedCrash {
  WorkerId worker;
  uint64_t event = 0;
  bool restarts = false;
  bool loses_disk = false;  // the new life finds no checkpoint
  Duration restart_after{};
};

// A worker that lies after one event in so many.
struct PlannedMadness {
  WorkerId worker;
  uint64_t one_in = 1;
};

// The effect of a seed on its run (swarm testing, Groce and others 2012): which classes of fault
// are on, every number of them equally likely, and how strong, each strength as likely at every
// order of magnitude.
struct FaultPlan {
  net_fake::LinkModel link;
  uint64_t worker_bytes_per_second = 0;  // as NetworkOptions has it
  uint64_t buffer_bytes = 0;             // after which a sender's queue is full; zero: as it is
  net_fake::Weather weather;
  SchedulingModel scheduling;
  MachineFaults machines;
  std::vector<PlannedCrash> crashes;
  std::optional<PlannedMadness> madness;

  // All of it, in one line.
  [[nodiscard]] std::string describe(const std::vector<std::string>& names) const;
};

// Whether a class is on, and how strong it is: the decisions of a plan. A class is on if its number
// and the share of the run, both below kShares, add up to kShares or more: then as many classes as
// not are on with every share, and turning one off changes no other.
[[nodiscard]] Key share_key();
[[nodiscard]] Key class_key(FaultClass fault);
// The strength at one worker, where each has its own.
[[nodiscard]] Key strength_key(FaultClass fault, WorkerId worker = WorkerId{UINT32_MAX});
inline constexpr uint64_t kShares = 1 << 16;

// Draws the plan. `peer_timeout` bounds what `mild` and `hostile` do: nobody may be taken for dead.
[[nodiscard]] FaultPlan draw_faults(net_fake::Decisions& decisions, const ClusterOptions& options,
                                    size_t workers, Duration peer_timeout);

// The restart of a crash, drawn apart: a crash point of the options has one too.
[[nodiscard]] PlannedCrash draw_restart(net_fake::Decisions& decisions, Restart restart,
                                        PlannedCrash crash, uint64_t number);

// How much later than worker 0 another one comes to a dynamic group: not at all, or up to 16 s.
[[nodiscard]] Duration draw_boot(net_fake::Decisions& decisions, WorkerId worker);

// Whether a worker that has left a dynamic group comes again as its next life, and how much later.
[[nodiscard]] std::optional<Duration> draw_return(net_fake::Decisions& decisions,
                                                  const LifeId& left);

}  // namespace rehearsal::sim
