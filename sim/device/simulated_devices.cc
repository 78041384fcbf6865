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
  bool are_of_process;
  std::shared_ptr<device::Machine> of_process;
};

SimulatedDevices::SimulatedDevices(SimulatedDevicesOptions options)
    : outer_(std::make_unique<Outer>()) {
  device::install_backend();
  outer_->are_of_process = options.for_all_threads;
  machine_ = std::make_shared<device::Machine>(std::move(options));
  c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  outer_->engine_has_threads = autograd.get_multithreading_enabled();
  autograd.set_multithreading_enabled(false);
  device::Selection here{.machine = machine_};
  if (outer_->are_of_process) {
    outer_->of_process = device::set_machine_of_process(machine_);
    here = {};
  }
  outer_->selection = std::exchange(selection(), std::move(here));
}

SimulatedDevices::~SimulatedDevices() {
  if (outer_->are_of_process) (void)device::set_machine_of_process(std::move(outer_->of_process));
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

DevicesHere SimulatedDevices::here() const {
  return {.type = kType, .count = machine_->count(), .engine_has_threads = false};
}

}  // namespace rehearsal::sim
