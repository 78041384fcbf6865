#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/device_lending.h"
#include "sim/device/machine.h"

namespace rehearsal::sim {

// All that the simulated workers of a cluster have lent each other. As with CUDA, memory that is
// lent stays although the process that has lent it ends.
class LoanBook {
 public:
  // `tells`: whether a loan that ends too early is a problem. With a mad worker it is none: that
  // may say of what others read that it has been copied.
  explicit LoanBook(bool tells = true) : tells_(tells) {}

  // Keeps the tensor, which is of these devices.
  [[nodiscard]] LoanId add(std::shared_ptr<device::Machine> devices, const at::Tensor& tensor);
  // Undefined: there is no such loan. Tells the lender's devices if somebody may read it still.
  [[nodiscard]] at::Tensor end(LoanId loan);

  struct Entry {
    std::shared_ptr<device::Machine> devices;
    at::Tensor tensor;
    int readers = 0;  // tensors that read its memory, those of copies that have still to run, too
  };
  // Null: there is no such loan.
  [[nodiscard]] Entry* find(LoanId loan);

 private:
  const bool tells_;
  std::map<LoanId, Entry> entries_;
  LoanId last_ = 0;
};

// The lending of one life. Single-threaded.
class SimulatedLending final : public DeviceLending {
 public:
  // Lives that say the same place can borrow from each other.
  SimulatedLending(std::shared_ptr<LoanBook> book, std::shared_ptr<device::Machine> devices,
                   std::string place)
      : book_(std::move(book)), devices_(std::move(devices)), place_(std::move(place)) {}

  [[nodiscard]] std::string place() const override { return place_; }
  void meet(WorkerId peer, const std::string& place) override { places_[peer] = place; }
  [[nodiscard]] bool lends(WorkerId to, uint64_t bytes) const override;
  [[nodiscard]] std::optional<Lent> lend(WorkerId to, const at::Tensor& tensor) override;
  [[nodiscard]] at::Tensor end(LoanId loan) override { return book_->end(loan); }
  [[nodiscard]] Result<at::Tensor> borrow(std::string_view ticket, c10::IntArrayRef sizes,
                                          c10::ScalarType dtype, c10::Device to) override;

 private:
  const std::shared_ptr<LoanBook> book_;
  const std::shared_ptr<device::Machine> devices_;
  const std::string place_;
  std::map<WorkerId, std::string> places_;
};

}  // namespace rehearsal::sim
