#include "sim/device/hooks.h"

#include <ATen/CPUGeneratorImpl.h>

#include "sim/device/device_guard.h"
#include "sim/device/pinned_memory.h"

namespace rehearsal::sim::device {

bool Hooks::isAvailable() const { return deviceCount() > 0; }

c10::DeviceIndex Hooks::deviceCount() const { return DeviceGuard().deviceCount(); }

c10::DeviceIndex Hooks::getCurrentDevice() const { return selection().device; }

void Hooks::setCurrentDevice(c10::DeviceIndex device) const {
  DeviceGuard().setDevice({SimulatedDevices::kType, device});
}

c10::DeviceIndex Hooks::exchangeDevice(c10::DeviceIndex device) const {
  return DeviceGuard().exchangeDevice({SimulatedDevices::kType, device}).index();
}

c10::DeviceIndex Hooks::maybeExchangeDevice(c10::DeviceIndex device) const {
  return exchangeDevice(device);
}

const at::Generator& Hooks::getDefaultGenerator(c10::DeviceIndex) const {
  return at::detail::getDefaultCPUGenerator();
}

at::Generator Hooks::getNewGenerator(c10::DeviceIndex) const {
  return at::detail::createCPUGenerator();
}

at::Device Hooks::getDeviceFromPtr(void* data) const {
  Machine& machine = current_machine();
  for (int i = 0; i < machine.count(); ++i)
    if (machine.holds(static_cast<c10::DeviceIndex>(i), data))
      return {SimulatedDevices::kType, static_cast<c10::DeviceIndex>(i)};
  TORCH_CHECK(false, "a pointer that is to no memory of the simulated devices of this thread");
}

bool Hooks::isPinnedPtr(const void* data) const { return is_pinned(data); }

at::Allocator* Hooks::getPinnedMemoryAllocator() const { return pinned_memory(); }

}  // namespace rehearsal::sim::device
