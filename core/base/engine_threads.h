#pragma once

#include "core/base/stream_set.h"

namespace rehearsal {

// While it lives, LibTorch's engine runs the backward passes of this stack on it, if it has no
// threads for the devices.
class EngineThreads {
 public:
  explicit EngineThreads(const DevicesHere& devices);
  ~EngineThreads();
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;

 private:
  const bool changed_;
};

}  // namespace rehearsal
