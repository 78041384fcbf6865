#include "real_net/worker/devices_check.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <string>

namespace rehearsal::real {

Status check_devices(const DevicesHere& devices, bool is_recorded) {
  if (devices.count == 0) return Unit{};
  const bool is_known =
      devices.type != c10::DeviceType::CPU && c10::impl::hasDeviceGuardImpl(devices.type);
  const int there = is_known ? int{c10::impl::VirtualGuardImpl(devices.type).deviceCount()} : 0;
  const std::string kind = c10::DeviceTypeName(devices.type, /*lower_case=*/true);
  if (devices.count < 0 || devices.count > there)
    return wrong_arguments("WorkerOptions::node.devices names " + std::to_string(devices.count) +
                           " devices of the kind '" + kind + "': this process has " +
                           std::to_string(there));
  if (is_recorded)
    return wrong_arguments(
        "a worker with devices cannot be recorded: name no folder for records, or no devices");
  return Unit{};
}

}  // namespace rehearsal::real
