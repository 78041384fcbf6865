// The bounds of a run: it ends, whatever its program does.
#include <string>

#include "sim/oracles/wait_graph.h"
#include "sim/oracles/words.h"
#include "sim/world/clock_guard.h"
#include "sim/world/cluster_parts.h"

namespace rehearsal::sim {
namespace {

// For each worker. Calls to oneself take no time, and of links that have no latency the frames of a
// whole window arrive at once; but sooner or later somebody waits for more.
constexpr uint64_t kEventsInInstantMax = 500'000;

// From one question to the next whether the run is to go on.
constexpr uint64_t kEventsBetween = 256;

}  // namespace

void ClusterParts::bound_time() {
  const Duration most = options_.virtual_time_max;
  const Duration passed = world_.queue.now().time_since_epoch();
  if (most.count() <= 0 || passed <= most || failed()) return;
  recorder_.findings().fail(
      "time", "the cluster",
      "the run is longer than the virtual time that it was given, " + in_seconds(most) +
          " (--virtual-time-max, or ClusterOptions::virtual_time_max); who waits for what:\n" +
          describe_waits(view(/*idle=*/false)));
}

void ClusterParts::bound_instant() {
  if (instant_ != world_.queue.now()) {
    instant_ = world_.queue.now();
    events_in_instant_ = 0;
    return;
  }
  if (++events_in_instant_ <= kEventsInInstantMax * names_.size() || failed()) return;
  recorder_.findings().fail("time", "the cluster",
                            grouped(events_in_instant_) + " events have happened at " +
                                in_seconds(instant_.time_since_epoch()) +
                                ", and time does not pass; who waits for what:\n" +
                                describe_waits(view(/*idle=*/false)));
}

void ClusterParts::ask_whether_to_go_on() {
  if (!options_.give_up || ++events_ % kEventsBetween != 0 || failed()) return;
  const RealClockAllowed asks;
  if (options_.give_up())
    recorder_.findings().fail(
        "given up", "the cluster",
        "whoever made the run has no time left for it, after " + grouped(events_) + " events");
}

}  // namespace rehearsal::sim
