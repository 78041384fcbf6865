#include "sim/world/device_scope.h"

#include <c10/core/AutogradState.h>

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

EngineWithoutThreads::EngineWithoutThreads(bool holds) : holds_(holds) {
  if (!holds_) return;
  c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  before_ = autograd.get_multithreading_enabled();
  autograd.set_multithreading_enabled(false);
}

EngineWithoutThreads::~EngineWithoutThreads() {
  if (holds_) c10::AutogradState::get_tls_state().set_multithreading_enabled(before_);
}

}  // namespace rehearsal::sim
