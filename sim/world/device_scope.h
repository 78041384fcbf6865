#pragma once

#include "sim/device/selection.h"

namespace rehearsal::sim {

// While it lives, what is current of simulated devices on this thread is what `inside` was when it
// began, and `inside` keeps what was current outside; then the other way round, so that `inside`
// is as the code within has left it. Null: nothing changes.
class DeviceScope {
 public:
  explicit DeviceScope(device::Selection* inside);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  device::Selection* const inside_;
};

// While it lives, what the code of a strand asks devices is no wait: others rely on none. Nothing
// without devices.
class AskingTeachesNothing {
 public:
  explicit AskingTeachesNothing(bool has_devices);
  ~AskingTeachesNothing();
  AskingTeachesNothing(const AskingTeachesNothing&) = delete;
  AskingTeachesNothing& operator=(const AskingTeachesNothing&) = delete;

 private:
  device::Selection* const devices_;  // null: there are none
  const bool before_;
};

}  // namespace rehearsal::sim
