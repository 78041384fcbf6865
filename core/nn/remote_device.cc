#include "core/api/remote_device.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <charconv>
#include <limits>

namespace rehearsal {
namespace {

constexpr std::string_view kRankPrefix = "rank:";

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "'" + text + "' is no remote device: " + why +
                          "; write \"<worker>[/<device>]\" or \"rank:<n>[/<device>]\""});
}

Target worker_of(const std::string& text, const std::string& worker) {
  if (worker.empty()) refuse(text, "it names no worker");
  if (!worker.starts_with(kRankPrefix)) return worker;
  const std::string rank = worker.substr(kRankPrefix.size());
  uint32_t number = 0;
  const auto [end, failed] = std::from_chars(rank.data(), rank.data() + rank.size(), number);
  const bool is_number = failed == std::errc() && end == rank.data() + rank.size();
  if (!is_number) refuse(text, "'" + rank + "' is no rank");
  return WorkerId{number};
}

c10::Device device_of(const std::string& text, const std::string& device) {
  if (device.find('/') != std::string::npos) refuse(text, "it has more than one '/'");
  if (device.empty()) refuse(text, "it names no device after the '/'");
  try {
    return c10::Device(device);
  } catch (const c10::Error&) {
    refuse(text, "'" + device + "' is no device");
  }
}

c10::DeviceIndex count_of(c10::DeviceType type) {
  if (type == c10::kCPU) return 1;
  if (type == c10::kMeta || !c10::impl::hasDeviceGuardImpl(type)) return 0;
  return c10::impl::getDeviceGuardImpl(type)->deviceCount();
}

}  // namespace

RemoteDevice::RemoteDevice(const std::string& text) {
  const size_t slash = text.find('/');
  worker_ = worker_of(text, text.substr(0, slash));
  if (slash != std::string::npos) device_ = device_of(text, text.substr(slash + 1));
}

c10::Device device_meant(const c10::Device& device, const DevicesHere& here,
                         const std::string& worker) {
  const bool is_of_worker = device.is_cuda() || (here.count > 0 && device.type() == here.type);
  const int number = device.has_index() ? device.index() : 0;
  if (is_of_worker && number < here.count) return here.at(number);
  const c10::DeviceIndex count = is_of_worker ? here.count : count_of(device.type());
  if (count > 0 && device.index() < count) return device;
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "worker '" + worker + "' has no device '" + device.str() +
                          "': " + std::to_string(count) + " of this type hold values there",
                  .worker = worker});
}

c10::Device Value<c10::Device>::read(ValueReader& reader) {
  const std::string text = reader.text();
  try {
    return c10::Device(text);
  } catch (const c10::Error&) {
    throw BadValue("not a device");
  }
}

}  // namespace rehearsal
