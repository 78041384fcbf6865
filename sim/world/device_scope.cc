#include "sim/world/device_scope.h"

#include <utility>

namespace rehearsal::sim {

DeviceScope::DeviceScope(device::Selection* inside) : inside_(inside) {
  if (inside_ != nullptr) std::swap(device::selection(), *inside_);
}

DeviceScope::~DeviceScope() {
  if (inside_ != nullptr) std::swap(device::selection(), *inside_);
}

AskingTeachesNothing::AskingTeachesNothing()
    : before_(std::exchange(device::selection().learns_by_asking, false)) {}

AskingTeachesNothing::~AskingTeachesNothing() { device::selection().learns_by_asking = before_; }

}  // namespace rehearsal::sim
