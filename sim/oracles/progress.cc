#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"
#include "sim/oracles/wait_graph.h"

namespace rehearsal::sim {
namespace {

// They say that somebody got further, and not only that somebody still tries.
constexpr EventKinds kMovesForward{EventKind::api_call,          EventKind::call_executed,
                                   EventKind::call_completed,    EventKind::execution_started,
                                   EventKind::execution_ended,   EventKind::owner_dropped,
                                   EventKind::context_released,  EventKind::pass_ended,
                                   EventKind::optimizer_stepped, EventKind::node_stopped};

class Progress final : public QuietOracle {
 public:
  explicit Progress(Duration bound) : bound_(bound) {}

  std::string_view name() const override { return "progress"; }
  EventKinds watched() const override { return kMovesForward; }

  void on_event(const Observation& seen, Findings&) override {
    if (kMovesForward.has(seen.event.kind)) last_ = seen.when;
  }

  void check(const ClusterView& cluster, Findings& findings) override {
    const Instant since = std::max(last_, cluster.calm_since);
    const bool late = cluster.calm && cluster.now - since > bound_;
    if (!late && !cluster.idle) return;
    std::string waiting;
    std::vector<NodeWaits> nodes;
    for (const LifeView& life : cluster.lives) {
      if (life.crashed || life.result != nullptr || life.node == nullptr) continue;
      waiting += (waiting.empty() ? "" : ", ") + std::string(life.name);
      nodes.push_back({life.id.worker, std::string(life.name), life.node->waits()});
    }
    const std::string why =
        cluster.idle ? "nothing will ever happen any more"
                     : "nothing has moved forward for " +
                           std::to_string((cluster.now - since) / std::chrono::seconds(1)) +
                           " virtual seconds since the faults stopped";
    findings.fail(name(), waiting, why + "; who waits for what:\n" + describe_wait_graph(nodes));
  }

 private:
  const Duration bound_;
  Instant last_{};
};

}  // namespace

std::unique_ptr<Oracle> make_progress(Duration bound) { return std::make_unique<Progress>(bound); }

}  // namespace rehearsal::sim
