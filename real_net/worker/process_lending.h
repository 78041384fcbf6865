#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/device_lending.h"

namespace rehearsal::real {

// The lending of a worker among those of its process, whose devices reach all memory of each
// other's: tensors go from device to device, also where a worker calls itself. Thread-safe.
class ProcessLending final : public DeviceLending {
 public:
  // Tensors of fewer bytes go by the host.
  explicit ProcessLending(uint64_t least_bytes = kLendFrom) : least_bytes_(least_bytes) {}

  [[nodiscard]] std::string place() const override;
  void meet(WorkerId peer, const std::string& place) override;
  [[nodiscard]] bool lends(WorkerId to, uint64_t bytes) const override;
  [[nodiscard]] std::optional<Lent> lend(WorkerId to, const at::Tensor& tensor) override;
  [[nodiscard]] at::Tensor end(LoanId loan) override;
  [[nodiscard]] Result<at::Tensor> borrow(std::string_view ticket, c10::IntArrayRef sizes,
                                          c10::ScalarType dtype, c10::Device to) override;

 private:
  const uint64_t least_bytes_;
  mutable std::mutex mutex_;
  std::map<WorkerId, bool> here_;  // whether that worker is of this process
};

}  // namespace rehearsal::real
