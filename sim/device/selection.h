#pragma once

#include <memory>
#include <vector>

#include "sim/device/machine.h"

namespace rehearsal::sim::device {

// The things that are current where code runs: the devices that it means, which of them, and the
// stream of each. As with CUDA it belongs to a thread; whoever runs several stacks on a thread
// exchanges it.
struct Selection {
  std::shared_ptr<Machine> machine;  // null: there are no simulated devices
  uint64_t turn = 0;  // the machine is that of the process, the how many-th; 0: it is the thread's
  c10::DeviceIndex device = 0;
  std::vector<c10::StreamId> streams;  // of each device; those that are missing are 0
  // Whether what the host asks and is told to be done counts as a wait. If not, it only tells that
  // memory which is freed then can be given out again: what else the answer may hide is told.
  bool learns_by_asking = true;

  [[nodiscard]] c10::StreamId stream_of(c10::DeviceIndex index) const;
  // Returns what it was before.
  c10::StreamId set_stream(c10::DeviceIndex index, c10::StreamId stream);
};

// That of this thread. One that has no devices of its own takes those of the process, from their
// first device and default streams on; LibTorch's engine then runs its backward passes on it.
[[nodiscard]] Selection& selection();

// From now on these are the devices of the process, those that threads have which have none of
// their own; null: there are none. Returns those before. Any thread.
std::shared_ptr<Machine> set_machine_of_process(std::shared_ptr<Machine> machine);

// The devices of this thread. Throws c10::Error if there are none.
[[nodiscard]] Machine& current_machine();

// The current stream of a device.
[[nodiscard]] StreamQueue& current_stream(c10::DeviceIndex device);

}  // namespace rehearsal::sim::device
