#include <string>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

class Invariants final : public QuietOracle {
 public:
  std::string_view name() const override { return "invariants"; }
  EventKinds watched() const override { return {}; }

  void check(const ClusterView& cluster, Findings& findings) override {
    for (const LifeView& life : cluster.lives) {
      if (life.crashed || life.node == nullptr) continue;
      const std::string broken = life.node->check_invariants();
      if (!broken.empty()) findings.fail(name(), "worker '" + std::string(life.name) + "'", broken);
    }
  }
  void at_end(const ClusterView& cluster, Findings& findings) override { check(cluster, findings); }
};

}  // namespace

std::unique_ptr<Oracle> make_invariants() { return std::make_unique<Invariants>(); }

}  // namespace rehearsal::sim
