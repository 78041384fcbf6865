#pragma once

#include <c10/core/Device.h>

#include <string>
#include <string_view>

#include "core/api/caller.h"
#include "core/values/value.h"

namespace rehearsal {

// Where a module shall live: a device of a worker. As text
//
//   "<worker>[/<device>]" or "rank:<n>[/<device>]", such as "ps", "ps/cuda:1", "rank:0/cpu"
//
// where a device is what torch::Device reads; without one it is the CPU. A worker whose name begins
// with "rank:" is named by its WorkerInfo.
class RemoteDevice {
 public:
  // Throws RpcError (bad_arguments) for a text that is neither form.
  RemoteDevice(const char* text) : RemoteDevice(std::string(text)) {}
  RemoteDevice(const std::string& text);
  RemoteDevice(const WorkerInfo& worker, c10::Device device = c10::kCPU)
      : worker_(worker), device_(device) {}

  [[nodiscard]] const Target& worker() const { return worker_; }
  [[nodiscard]] const c10::Device& device() const { return device_; }

 private:
  Target worker_{std::string()};
  c10::Device device_{c10::kCPU};
};

// The device that is meant at a worker with these devices: of their kind, where the text names a
// GPU. Throws RpcError (bad_arguments) unless it is there and holds values.
[[nodiscard]] c10::Device device_meant(const c10::Device& device, const DevicesHere& here,
                                       const std::string& worker);

template <>
struct Value<c10::Device> {
  static void write(ValueWriter& writer, const c10::Device& device) { writer.text(device.str()); }
  static c10::Device read(ValueReader& reader);
  static void sign(WireSignature& signature) { signature += "device"; }
};

}  // namespace rehearsal
