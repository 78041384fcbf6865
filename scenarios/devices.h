// For scenarios whose workers may have any number of devices.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "core/api/worker_access.h"

namespace rehearsal {

// Each of the workers declared last sends what is on device i, of `count`, to device i + shift of
// each of these peers, counted on from device 0 behind the last one. Nothing for a count of 0.
inline void map_devices(Program& program, int count, const std::vector<std::string>& peers,
                        int shift = 1) {
  DeviceMap map;
  for (int i = 0; i < count; ++i) map.add(i, (i + shift) % count);
  if (count > 0)
    for (const std::string& peer : peers) program.device_map(peer, map);
}

// This device of a worker, counted on from device 0 behind the last one; the CPU if it has none.
[[nodiscard]] inline c10::Device device_or_cpu(const WorkerAccess& worker, int64_t number = 0) {
  const int count = worker.device_count();
  return count == 0 ? c10::Device(c10::kCPU) : worker.device(static_cast<int>(number % count));
}

// The place of a remote module on this device of a worker; the worker alone if `count` is 0.
[[nodiscard]] inline std::string place_on(const std::string& worker, int64_t number, int count) {
  return count == 0 ? worker : worker + "/cuda:" + std::to_string(number % count);
}

// Whether this worker's devices give the bits of the CPU: simulated ones do, GPUs do not.
[[nodiscard]] inline bool rounds_as_cpu(const WorkerAccess& worker) {
  return !device_or_cpu(worker).is_cuda();
}

}  // namespace rehearsal
