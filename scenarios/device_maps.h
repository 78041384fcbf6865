// Device maps for scenarios that can be asked for any number of devices.
#pragma once

#include <string>
#include <vector>

#include "core/api/program.h"

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

}  // namespace rehearsal
