#include "sim/world/device_scope.h"

#include <utility>

namespace rehearsal::sim {

DeviceScope::DeviceScope(device::Selection* inside) : inside_(inside) {
  if (inside_ != nullptr) std::swap(device::selection(), *inside_);
}

DeviceScope::~DeviceScope() {
  if (inside_ != nullptr) std::swap(device::selection(), *inside_);
}

AskingTeachesNothing::AskingTeachesNothing(bool has_devices)
    : devices_(has_devices ? &device::selection() : nullptr),
      before_(devices_ != nullptr && std::exchange(devices_->learns_by_asking, false)) {}

AskingTeachesNothing::~AskingTeachesNothing() {
  if (devices_ != nullptr) devices_->learns_by_asking = before_;
}

}  // namespace rehearsal::sim
