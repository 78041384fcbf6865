#include <array>
#include <map>
#include <string>
#include <utility>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

using Entry = std::pair<const char*, uint64_t NodeCensus::*>;
constexpr std::array<Entry, 12> kTables = {{
    {"pending calls", &NodeCensus::pending_calls},
    {"executions", &NodeCensus::executions},
    {"owned values", &NodeCensus::owners},
    {"forks of owned values", &NodeCensus::owner_forks},
    {"handles of owned values", &NodeCensus::owner_handles},
    {"user references", &NodeCensus::users},
    {"unconfirmed references", &NodeCensus::pending_users},
    {"pending children", &NodeCensus::pending_children},
    {"contexts", &NodeCensus::contexts},
    {"passes", &NodeCensus::passes},
    {"unacknowledged frames", &NodeCensus::unacknowledged},
    {"timers", &NodeCensus::timers},
}};

constexpr std::string_view kGracefulEnd = "the worker has shut down";

class NoLeak final : public QuietOracle {
 public:
  std::string_view name() const override { return "no leak"; }
  EventKinds watched() const override {
    return {EventKind::execution_started, EventKind::execution_ended, EventKind::node_stopped};
  }

  // A worker that leaves in good order cuts nothing off.
  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    if (event.kind == EventKind::execution_started) ++running_[seen.life];
    if (event.kind == EventKind::execution_ended) --running_[seen.life];
    if (event.kind != EventKind::node_stopped || event.text != kGracefulEnd) return;
    if (running_[seen.life] > 0)
      findings.fail(name(), "worker " + std::to_string(seen.life.worker.value),
                    "it has left, and " + std::to_string(running_[seen.life]) +
                        " functions, continuations or walks still run there");
  }

  void at_end(const ClusterView& cluster, Findings& findings) override {
    for (const LifeView& life : cluster.lives) {
      const std::string worker = "worker '" + std::string(life.name) + "'";
      if (life.live_stacks > 0)
        findings.fail(name(), worker, std::to_string(life.live_stacks) + " stacks are left");
      if (life.node == nullptr) continue;
      if (!life.node->ended()) findings.fail(name(), worker, "its node has not ended");
      const NodeCensus census = life.node->census();
      for (const auto& [what, count] : kTables)
        // Executions that a crash ended are not counted down: their stacks tell.
        if (census.*count > 0 && (count != &NodeCensus::executions || !life.crashed))
          findings.fail(name(), worker, std::to_string(census.*count) + " " + what + " are left");
    }
  }

 private:
  std::map<net_fake::LifeId, int64_t> running_;
};

}  // namespace

std::unique_ptr<Oracle> make_no_leak() { return std::make_unique<NoLeak>(); }

}  // namespace rehearsal::sim
