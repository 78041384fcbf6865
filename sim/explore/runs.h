#pragma once

#include <functional>
#include <optional>
#include <utility>
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
  // `give_up`: as in ClusterOptions.
  Runs(const Program& program, const ExploreOptions& options,
       std::function<bool()> give_up = nullptr)
      : program_(program), options_(options), give_up_(std::move(give_up)) {}

  // A run in which these faults happen at some point. Empty if the guide stopped it.
  [[nodiscard]] std::optional<RunReport> run(const std::vector<Transition>& faults, Guide& guide);

 private:
  [[nodiscard]] ClusterOptions cluster_options(const std::vector<Transition>& faults,
                                               Trace& section);

  GatedProgram program_;
  const ExploreOptions& options_;
  const std::function<bool()> give_up_;
  fibers::StackPool stacks_;
};

}  // namespace rehearsal::sim::explore
