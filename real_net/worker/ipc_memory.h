#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"

namespace rehearsal::real {

// Where memory of a device lies, for other processes of this machine: by a handle of the
// allocation, which is bytes of the driver's, and how far behind its beginning.
struct IpcPlace {
  std::string handle;
  uint64_t offset = 0;
};

// An allocation of another process, mapped into this one for as long as this object lives. Its
// owner must not free the allocation earlier.
struct IpcMapping {
  std::shared_ptr<void> begin;
  uint64_t bytes = 0;
};

// How a kind of devices gives their memory to other processes: the driver. Thread-safe.
class IpcMemory {
 public:
  virtual ~IpcMemory() = default;

  // Of memory of a device here. The error: the driver cannot share such memory.
  [[nodiscard]] virtual Result<IpcPlace> share(const void* address, c10::Device device) = 0;
  // For copies to a device here. The error: there is no such allocation, or the device cannot
  // reach it.
  [[nodiscard]] virtual Result<IpcMapping> map(const std::string& handle, c10::Device device) = 0;
};

}  // namespace rehearsal::real
