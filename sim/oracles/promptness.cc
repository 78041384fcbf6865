#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"
#include "sim/oracles/words.h"

namespace rehearsal::sim {
namespace {

// Longer than any link of the simulator is late, and shorter than the heartbeats that would
// acknowledge what nobody has.
constexpr Duration kAcknowledges = std::chrono::seconds(3);
constexpr Duration kLooks = std::chrono::milliseconds(100);

class Promptness final : public QuietOracle {
 public:
  std::string_view name() const override { return "promptness"; }
  EventKinds watched() const override { return {}; }

  void check(const ClusterView& cluster, Findings& findings) override {
    if (!cluster.untroubled) return owed_.clear();
    if (cluster.now - looked_ < kLooks) return;
    looked_ = cluster.now;
    std::map<Way, Owed> owed;
    for (const LifeView& life : cluster.lives) {
      if (life.node == nullptr || !works(life)) continue;
      for (const OwedAcknowledgement& one : life.node->owed_acknowledgements()) {
        const LifeView* const to = working(cluster, one.peer);
        if (to == nullptr) continue;
        Owed& now = owed[{life.id, to->id}];
        now = {one.sequence, cluster.now};
        const auto before = owed_.find({life.id, to->id});
        if (before == owed_.end() || before->second.sequence != one.sequence) continue;
        now.since = before->second.since;
        if (cluster.now - now.since > kAcknowledges) late(life, *to, now, findings);
      }
    }
    owed_ = std::move(owed);
  }

 private:
  using Way = std::pair<net_fake::LifeId, net_fake::LifeId>;
  struct Owed {
    uint64_t sequence = 0;
    Instant since{};  // it was seen
  };

  static bool works(const LifeView& life) { return !life.crashed && life.result == nullptr; }

  // The present life of a worker.
  static const LifeView* working(const ClusterView& cluster, WorkerId worker) {
    const auto found = std::find_if(
        cluster.lives.begin(), cluster.lives.end(),
        [worker](const LifeView& life) { return life.id.worker == worker && works(life); });
    return found == cluster.lives.end() ? nullptr : &*found;
  }

  void late(const LifeView& from, const LifeView& to, const Owed& owed, Findings& findings) const {
    findings.fail(name(), "worker '" + std::string(to.name) + "'",
                  "it has not acknowledged message " + std::to_string(owed.sequence) +
                      " of worker '" + std::string(from.name) + "' for " +
                      in_seconds(looked_ - owed.since) + ", and no fault happens any more");
  }

  std::map<Way, Owed> owed_;
  Instant looked_{};
};

}  // namespace

std::unique_ptr<Oracle> make_promptness() { return std::make_unique<Promptness>(); }

}  // namespace rehearsal::sim
