#include "sim/simulated_devices.h"

#include <c10/core/AutogradState.h>

#include <stdexcept>
#include <utility>

#include "sim/device/backend.h"
#include "sim/device/selection.h"

namespace rehearsal::sim {

using device::selection;

struct SimulatedDevices::Outer {
  device::Selection selection;
  bool engine_has_threads;
};

SimulatedDevices::SimulatedDevices(SimulatedDevicesOptions options)
    : machine_((device::install_backend(), std::make_shared<device::Machine>(std::move(options)))),
      outer_(std::make_unique<Outer>()) {
  c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  outer_->engine_has_threads = autograd.get_multithreading_enabled();
  autograd.set_multithreading_enabled(false);
  outer_->selection = std::exchange(selection(), device::Selection{.machine = machine_});
}

SimulatedDevices::~SimulatedDevices() {
  selection() = std::move(outer_->selection);
  c10::AutogradState::get_tls_state().set_multithreading_enabled(outer_->engine_has_threads);
}

void SimulatedDevices::synchronize() { machine_->synchronize_all(); }

c10::Stream SimulatedDevices::new_stream(int device) {
  const auto index = static_cast<c10::DeviceIndex>(device);
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, index),
                     device::current_machine().new_stream(index));
}

const std::vector<std::string>& SimulatedDevices::problems() const { return machine_->problems(); }

void SimulatedDevices::check() {
  std::string text;
  try {
    synchronize();
  } catch (const c10::Error&) {
    for (const std::string& failure : machine_->failures()) text += failure + '\n';
  }
  for (const std::string& problem : problems()) text += problem + '\n';
  if (text.empty()) return;
  text.pop_back();
  throw std::runtime_error(text);
}

uint64_t SimulatedDevices::operations_given() const { return machine_->operations_given(); }

uint64_t SimulatedDevices::operations_done() const { return machine_->operations_done(); }

size_t SimulatedDevices::bytes_in_use(int device) const {
  return machine_->bytes_in_use(static_cast<c10::DeviceIndex>(device));
}

}  // namespace rehearsal::sim
