#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/device/clock.h"
#include "sim/device/region.h"

namespace rehearsal::sim::device {

// An operation, as a report names it.
struct OperationName {
  uint64_t number = 0;  // in the order in which the host gave the operations to the streams
  std::string name;     // of the operator, such as aten::add
  c10::DeviceIndex device = 0;
  c10::StreamId stream = 0;
  std::vector<void*> called_from;  // the host's stack: return addresses, innermost first
};

// "aten::add (operation 12, training.cc:27) on stream 1 of sim:0"; an empty place is left out.
[[nodiscard]] std::string text_of(const OperationName& operation, const std::string& place);

// "stream 1 of sim:0"
[[nodiscard]] std::string stream_text(c10::DeviceIndex device, c10::StreamId stream);

// That an operation reads or writes bytes of memory.
struct Access {
  std::shared_ptr<const OperationName> by;
  Epoch at;
  bool writes = false;
  uint64_t allocation = 0;  // as which the memory was given out then
  Region region;
};

// All that was done with one block of memory, as far as it matters to what will be. Finds accesses
// of which one writes, and that nothing puts in order: happens-before, as in FastTrack (C.
// Flanagan, S. Freund, PLDI 2009), over regions in place of variables. Whether an order is missing
// does not depend on what goes first in this run.
class Accesses {
 public:
  // Adds one; `known` is what is done before it. Returns the earlier ones that touch the same
  // bytes, are not done before it, and must be.
  std::vector<Access> add(Access access, const Clock& known);

  [[nodiscard]] size_t size() const { return accesses_.size(); }

 private:
  std::vector<Access> accesses_;
};

}  // namespace rehearsal::sim::device
