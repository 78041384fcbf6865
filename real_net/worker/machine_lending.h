#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/device_lending.h"
#include "core/base/stream_set.h"
#include "real_net/worker/ipc_memory.h"
#include "real_net/worker/process_lending.h"

namespace rehearsal::real {

// The lending of a worker among all of its machine: those of its process as ProcessLending does,
// and those of other processes where the driver maps memory into them. Two workers of two processes
// lend to each other if each device of either reaches all of the other's: each tries it with a
// piece of memory that the other has shared for that. Thread-safe.
class MachineLending final : public DeviceLending {
 public:
  // `ipc` may be null: only those of its process lend to each other.
  MachineLending(std::shared_ptr<IpcMemory> ipc, const DevicesHere& devices,
                 uint64_t least_bytes = kLendFrom);

  [[nodiscard]] std::string place() const override;
  void meet(WorkerId peer, const std::string& place) override;
  // The first time of a peer of another process it takes milliseconds.
  [[nodiscard]] bool lends(WorkerId to, uint64_t bytes) const override;
  [[nodiscard]] std::optional<Lent> lend(WorkerId to, const at::Tensor& tensor) override;
  [[nodiscard]] at::Tensor end(LoanId loan) override { return process_.end(loan); }
  [[nodiscard]] Result<at::Tensor> borrow(std::string_view ticket, c10::IntArrayRef sizes,
                                          c10::ScalarType dtype, c10::Device to) override;

 private:
  // A peer of another process of this machine.
  struct Neighbour {
    std::vector<std::string> samples;  // of memory of each of its devices: handles
    std::optional<bool> is_reached;    // none: nobody has tried
  };
  [[nodiscard]] bool reaches(const std::vector<std::string>& samples) const;
  [[nodiscard]] Result<IpcMapping> mapped(const std::string& handle, c10::Device device);

  const std::shared_ptr<IpcMemory> ipc_;
  const DevicesHere devices_;
  const uint64_t least_bytes_;
  ProcessLending process_;
  std::vector<at::Tensor> shared_for_trials_;
  std::string place_;
  mutable std::mutex mutex_;
  mutable std::map<WorkerId, Neighbour> neighbours_;
  // By handle and device: one that is still used is not mapped again.
  std::map<std::pair<std::string, c10::DeviceIndex>, std::pair<std::weak_ptr<void>, uint64_t>>
      mappings_;
};

}  // namespace rehearsal::real
