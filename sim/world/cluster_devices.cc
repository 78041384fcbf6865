// ClusterParts: the simulated devices of its lives.
#include <array>

#include "sim/device/backend.h"
#include "sim/world/cluster_parts.h"

namespace rehearsal::sim {

using net_fake::DecisionKind;
using net_fake::Key;

// A process that comes back finds its machine's devices anew.
std::shared_ptr<device::Machine> ClusterParts::make_devices(const LifeId& life) {
  if (options_.devices == 0) return nullptr;
  device::install_backend();
  auto choose = [decisions = world_.decisions, life, drawn = uint64_t{0}](const std::string&,
                                                                          uint32_t n) mutable {
    const Key key{.kind = DecisionKind::device, .subject = life, .number = ++drawn};
    return static_cast<uint32_t>(decisions->choose(key, n));
  };
  auto devices = std::make_shared<device::Machine>(
      SimulatedDevicesOptions{.count = options_.devices, .choose = std::move(choose)});
  if (history_)
    devices->watch([this, life](const device::StreamStep& step) {
      if (history_) history_->on_stream(life, step);
    });
  return devices;
}

// In two of three lives what is larger than so few bytes leaves while it is copied.
uint64_t ClusterParts::draw_copied_at_once(const LifeId& life) {
  const Key key{.kind = DecisionKind::copied_parts, .subject = life};
  constexpr std::array<uint64_t, 3> kBytes{UINT64_MAX, 8, 64};
  return kBytes[decisions_.choose(key, kBytes.size())];
}

// In two of three lives a worker is at the place where others are, too.
std::shared_ptr<DeviceLending> ClusterParts::make_lending(
    const LifeId& life, std::shared_ptr<device::Machine> devices) {
  if (devices == nullptr) return nullptr;
  const Key key{.kind = DecisionKind::lending, .subject = life};
  if (decisions_.choose(key, 3) == 0) return nullptr;
  if (loans_ == nullptr) loans_ = std::make_shared<LoanBook>(/*tells=*/mad_ == nullptr);
  return std::make_shared<SimulatedLending>(loans_, std::move(devices), "one machine");
}

}  // namespace rehearsal::sim
