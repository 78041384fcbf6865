#include "core/autograd/device_streams.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace rehearsal {

void DeviceStreams::note(const c10::Stream& stream) {
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end())
    streams_.push_back(stream);
}

void DeviceStreams::join() {
  for (const c10::Stream& stream : streams_) {
    const c10::impl::VirtualGuardImpl device(stream.device_type());
    const c10::Stream current = device.getStream(stream.device());
    if (current == stream) continue;
    c10::Event done(stream.device_type());
    done.record(stream);
    current.wait(done);
  }
  streams_.clear();
}

}  // namespace rehearsal
