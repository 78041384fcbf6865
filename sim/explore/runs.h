#pragma once

#include <optional>
#include <vector>

#include "core/fibers/stack_pool.h"
#include "sim/explore/explorer.h"
#include "sim/explore/gated_program.h"
#include "sim/explore/guide.h"

namespace rehearsal::sim::explore {

// Runs of one program, one after the other, each guided through its section. Program and options
// outlive it.
class Runs {
 public:
  Runs(const Program& program, const ExploreOptions& options)
      : program_(program), options_(options) {}

  // A run in which these faults happen at some point. Empty if the guide stopped it.
  [[nodiscard]] std::optional<RunReport> run(const std::vector<Transition>& faults, Guide& guide);

 private:
  [[nodiscard]] ClusterOptions cluster_options(const std::vector<Transition>& faults,
                                               Trace& section);

  GatedProgram program_;
  const ExploreOptions& options_;
  fibers::StackPool stacks_;
};

}  // namespace rehearsal::sim::explore
