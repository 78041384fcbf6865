#pragma once

#include <c10/core/Stream.h>

#include <vector>

namespace rehearsal {

// The streams on which a walk made gradients that leave it. Empty without an accelerator.
class DeviceStreams {
 public:
  void note(const c10::Stream& stream);

  // Makes the calling thread's current stream of each device wait for them.
  void join();

 private:
  std::vector<c10::Stream> streams_;
};

}  // namespace rehearsal
