#include <string>

#include "sim/oracles/oracles.h"

namespace rehearsal::sim {
namespace {

class DeviceWaits final : public Oracle {
 public:
  std::string_view name() const override { return "device waits"; }
  EventKinds watched() const override { return {}; }
  void on_event(const Observation&, Findings&) override {}
  void on_crash(const LifeView&) override {}

  void check(const ClusterView& cluster, Findings& findings) override {
    for (const LifeView& life : cluster.lives) {
      if (life.device_problems == nullptr || life.device_problems->empty()) continue;
      findings.fail(name(), "'" + std::string(life.name) + "'", life.device_problems->front());
    }
  }
  void at_end(const ClusterView& cluster, Findings& findings) override { check(cluster, findings); }
};

}  // namespace

std::unique_ptr<Oracle> make_device_waits() { return std::make_unique<DeviceWaits>(); }

}  // namespace rehearsal::sim
