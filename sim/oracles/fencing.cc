#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

// The longest time for the news once all links work.
constexpr Duration kNews = std::chrono::seconds(3);

// A worker that was given up is told as soon as it can be: two workers never disagree for long on
// whether they have lost each other.
class Fencing final : public QuietOracle {
 public:
  std::string_view name() const override { return "fencing"; }
  EventKinds watched() const override {
    return {EventKind::peer_up, EventKind::peer_fenced, EventKind::peer_lost};
  }

  void on_event(const Observation& seen, Findings&) override {
    const Event& event = seen.event;
    const uint64_t who = seen.incarnation.value;
    if (event.kind == EventKind::peer_up) {
      if (!fences_.contains({who, event.number})) met_[{who, event.peer}] = event.number;
    } else if (event.kind == EventKind::peer_lost) {
      heard_.insert_or_assign(std::pair(who, event.peer), std::string(event.text));
    } else if (event.kind == EventKind::peer_fenced) {
      const auto heard = heard_.find({who, event.peer});
      const bool is_answer = heard != heard_.end() && heard->second == event.text;
      fences_.emplace(std::pair(who, event.number), Fence{seen.when, is_answer});
    }
  }

  void check(const ClusterView& cluster, Findings& findings) override {
    if (!cluster.calm) return;
    for (const auto& [pair, fence] : fences_) {
      const auto& [who, whom] = pair;
      if (fences_.contains({whom, who})) continue;
      if (cluster.now - std::max(fence.when, cluster.calm_since) < kNews) continue;
      const LifeView* const one = living(cluster, who);
      const LifeView* const other = living(cluster, whom);
      if (one == nullptr || other == nullptr) continue;
      if (has_lost(whom, one->id.worker)) continue;
      if (cluster.dynamic && (fence.is_answer || was_told(whom, one->id.worker))) continue;
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

  // All lives of that worker that it has met. A worker that stands still or is cut off while
  // another starts again is given up by a life of which it never hears.
  [[nodiscard]] bool has_lost(uint64_t incarnation, WorkerId worker) const {
    const auto met = met_.find({incarnation, worker});
    return met != met_.end() && fences_.contains({incarnation, met->second});
  }

  // By one whom it has not met itself: in a dynamic group it may be refused, or fenced, by such
  // one.
  [[nodiscard]] bool was_told(uint64_t incarnation, WorkerId by) const {
    const auto found = heard_.find({incarnation, by});
    return found != heard_.end() && found->second.starts_with("fenced by");
  }

  struct Fence {
    Instant when;
    bool is_answer;  // to the other end's closing the link
  };
  std::map<std::pair<uint64_t, uint64_t>, Fence> fences_;  // incarnations: who, whom
  std::map<std::pair<uint64_t, WorkerId>, uint64_t> met_;  // its latest life that was met
  std::map<std::pair<uint64_t, WorkerId>, std::string>
      heard_;  // why a link was lost, at the latest
};

}  // namespace

std::unique_ptr<Oracle> make_fencing() { return std::make_unique<Fencing>(); }

}  // namespace rehearsal::sim
