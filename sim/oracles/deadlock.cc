#include <algorithm>
#include <string>
#include <vector>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"
#include "sim/oracles/wait_graph.h"
#include "sim/oracles/words.h"

namespace rehearsal::sim {
namespace {

// From one look to the next.
constexpr Duration kBetween = std::chrono::seconds(1);

// A cycle that lasts so long is one. A program may end it by a short time that it gives its calls.
constexpr Duration kPatience = std::chrono::seconds(5);

class Deadlock final : public QuietOracle {
 public:
  explicit Deadlock(std::vector<NodeWaits>& seen) : seen_(seen) {}

  std::string_view name() const override { return "deadlock"; }
  EventKinds watched() const override { return {}; }

  void check(const ClusterView& cluster, Findings& findings) override {
    if (!cluster.idle && cluster.now - looked_ < kBetween) return;
    looked_ = cluster.now;
    seen_ = waits_in_code(cluster) ? waits_of(cluster) : std::vector<NodeWaits>{};
    std::vector<Deadlocked> cycle = deadlock_in(seen_);
    if (cycle != standing_) {
      standing_ = std::move(cycle);
      since_ = cluster.now;
    }
    const bool lasts = cluster.idle || cluster.now - since_ >= kPatience;
    if (!standing_.empty() && lasts) tell(cluster, findings);
  }

 private:
  static bool waits_in_code(const ClusterView& cluster) {
    return std::any_of(cluster.lives.begin(), cluster.lives.end(), [](const LifeView& life) {
      return runs(life) && life.node->code_waits() > 0;
    });
  }

  void tell(const ClusterView& cluster, Findings& findings) const {
    std::string cycle;
    for (const Deadlocked& stack : standing_) cycle += stack.who + " waits for ";
    findings.fail(name(), workers(cluster),
                  cycle + standing_.front().who +
                      "; no code of the program can end this; who waits for what:\n" +
                      describe_waits(cluster));
  }

  // Those in the cycle, in rank order.
  std::string workers(const ClusterView& cluster) const {
    std::string names;
    for (const LifeView& life : cluster.lives) {
      const bool is_in =
          std::any_of(standing_.begin(), standing_.end(),
                      [&life](const Deadlocked& stack) { return stack.worker == life.id.worker; });
      if (is_in && runs(life)) names += (names.empty() ? "" : ", ") + std::string(life.name);
    }
    return names;
  }

  std::vector<NodeWaits>& seen_;
  Instant looked_{};
  std::vector<Deadlocked> standing_;  // the cycle of the last look
  Instant since_{};
};

}  // namespace

std::unique_ptr<Oracle> make_deadlock(std::vector<NodeWaits>& seen) {
  return std::make_unique<Deadlock>(seen);
}

}  // namespace rehearsal::sim
