#include "sim/explore/runs.h"

#include <algorithm>

#include "core/fibers/thread_state.h"
#include "sim/explore/section.h"
#include "sim/world/cluster_parts.h"

namespace rehearsal::sim::explore {
namespace {

// Longer than any run: what is silent is given up by the section, never by a clock.
constexpr Duration kNever = std::chrono::hours(24);

// For all that is on its way when all have joined.
constexpr Duration kSettling = std::chrono::milliseconds(100);

}  // namespace

std::optional<RunReport> Runs::run(const std::vector<Transition>& faults, Guide& guide) {
  if (options_.before_run) options_.before_run();
  program_.reset();
  Section section(faults, guide);
  ClusterParts parts(options_.seed, program_.program(), cluster_options(faults, section.trace()));
  {
    const fibers::DefaultThreadState state;
    parts.begin();
    while (!program_.all_wait() && parts.step()) {
    }
    const Instant settled = parts.queue().now() + kSettling;
    while (parts.step(settled)) {
    }
    program_.open_begin();
    if (!section.run(parts)) return std::nullopt;
    program_.open_end();
  }
  parts.run_to_end();
  return parts.report();
}

ClusterOptions Runs::cluster_options(const std::vector<Transition>& faults, Trace& section) {
  // Where two workers have lost each other and a third neither, a shutdown cannot end.
  const bool can_shut_down =
      std::none_of(faults.begin(), faults.end(),
                   [](const Transition& fault) { return fault.kind == Transition::Kind::give_up; });
  ClusterOptions options;
  options.faults = FaultLevel::none;
  options.otherwise = Otherwise::benign;
  options.network.dead_refuse = false;  // The end of a peer is a transition of its own.
  options.adjust_node = [this, can_shut_down](NodeOptions& node) {
    node.rpc_timeout = {};
    node.peer_timeout = kNever;
    node.heartbeat = kNever;
    if (can_shut_down) node.shutdown_timeout = kNever;
    if (options_.adjust_node) options_.adjust_node(node);
  };
  options.give_up = give_up_;
  options.stacks = &stacks_;
  options.traces = options_.traces;
  options.traces.push_back(&section);
  options.event_lines = options_.event_lines;
  options.history = options_.history;
  options.coverage = options_.coverage;
  options.strict_leaks = options_.strict_leaks;
  return options;
}

}  // namespace rehearsal::sim::explore
