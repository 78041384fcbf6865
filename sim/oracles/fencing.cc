#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

// What the news may take once all links work.
constexpr Duration kNews = std::chrono::seconds(3);

// Whoever was given up is told as soon as it can be: two workers never disagree for long on whether
// they have lost each other.
class Fencing final : public QuietOracle {
 public:
  std::string_view name() const override { return "fencing"; }
  EventKinds watched() const override { return {EventKind::peer_fenced}; }

  void on_event(const Observation& seen, Findings&) override {
    if (seen.event.kind != EventKind::peer_fenced) return;
    fences_.emplace(std::pair(seen.incarnation.value, seen.event.number), seen.when);
  }

  void check(const ClusterView& cluster, Findings& findings) override {
    if (!cluster.calm) return;
    for (const auto& [pair, when] : fences_) {
      const auto& [who, whom] = pair;
      if (fences_.contains({whom, who})) continue;
      if (cluster.now - std::max(when, cluster.calm_since) < kNews) continue;
      const LifeView* const one = living(cluster, who);
      const LifeView* const other = living(cluster, whom);
      if (one == nullptr || other == nullptr) continue;
      findings.fail(name(), "worker '" + std::string(other->name) + "'",
                    "worker '" + std::string(one->name) +
                        "' has given it up, and it does not know although all links work");
    }
  }

 private:
  static const LifeView* living(const ClusterView& cluster, uint64_t incarnation) {
    for (const LifeView& life : cluster.lives)
      if (life.incarnation.value == incarnation && !life.crashed && life.result == nullptr)
        return &life;
    return nullptr;
  }

  std::map<std::pair<uint64_t, uint64_t>, Instant> fences_;  // incarnations: who, whom
};

}  // namespace

std::unique_ptr<Oracle> make_fencing() { return std::make_unique<Fencing>(); }

}  // namespace rehearsal::sim
