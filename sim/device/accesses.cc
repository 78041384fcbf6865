#include "sim/device/accesses.h"

#include <utility>

namespace rehearsal::sim::device {

std::string stream_text(c10::DeviceIndex device, c10::StreamId stream) {
  return "stream " + std::to_string(stream) + " of sim:" + std::to_string(device);
}

std::string text_of(const OperationName& operation, const std::string& place) {
  return operation.name + " (operation " + std::to_string(operation.number) +
         (place.empty() ? "" : ", " + place) + ") on " +
         stream_text(operation.device, operation.stream);
}

std::vector<Access> Accesses::add(Access access, const Clock& known) {
  std::vector<Access> unordered;
  std::vector<Access> kept;
  kept.reserve(accesses_.size() + 1);
  for (Access& earlier : accesses_) {
    const bool same_operation = earlier.by == access.by;
    const bool ordered = same_operation || known.covers(earlier.at);
    // The first access of all is that the memory is given out, all of it, however much of it each
    // tensor has. So what comes later is judged by that one.
    const bool of_freed = earlier.allocation != access.allocation;
    if (!ordered && (earlier.writes || access.writes) &&
        (of_freed || overlap(earlier.region, access.region)))
      unordered.push_back(earlier);
    // An access after a write that covers them is after them, too; so with reads by the same
    // stream.
    const bool told_by_this =
        ordered && !same_operation && covers(access.region, earlier.region) &&
        (access.writes || (!earlier.writes && earlier.at.stream == access.at.stream));
    if (!told_by_this && !of_freed) kept.push_back(std::move(earlier));
  }
  kept.push_back(std::move(access));
  accesses_ = std::move(kept);
  return unordered;
}

}  // namespace rehearsal::sim::device
