#include "sim/device/selection.h"

#include <c10/util/Exception.h>

#include <utility>

namespace rehearsal::sim::device {

c10::StreamId Selection::stream_of(c10::DeviceIndex index) const {
  const auto place = static_cast<size_t>(index);
  return place < streams.size() ? streams[place] : 0;
}

c10::StreamId Selection::set_stream(c10::DeviceIndex index, c10::StreamId stream) {
  const auto place = static_cast<size_t>(index);
  if (streams.size() <= place) streams.resize(place + 1);
  return std::exchange(streams[place], stream);
}

Selection& selection() {
  thread_local Selection of_this_thread;
  return of_this_thread;
}

Machine& current_machine() {
  TORCH_CHECK(selection().machine != nullptr,
              "there are no simulated devices in this thread: make a sim::SimulatedDevices first");
  return *selection().machine;
}

StreamQueue& current_stream(c10::DeviceIndex device) {
  return current_machine().stream(device, selection().stream_of(device));
}

}  // namespace rehearsal::sim::device
