#include "sim/world/device_lending.h"

#include <ATen/ops/from_blob.h>

#include <charconv>
#include <utility>

#include "sim/device/pinned_memory.h"

namespace rehearsal::sim {
namespace {

// A tensor that reads lent memory, as the host sees it.
class Reader {
 public:
  Reader(std::shared_ptr<LoanBook> book, LoanId loan, const LoanBook::Entry& entry)
      : book_(std::move(book)),
        loan_(loan),
        devices_(entry.devices),
        memory_(devices_->on_host(entry.tensor.const_data_ptr())),
        pinned_(memory_, entry.tensor.nbytes()) {
    ++book_->find(loan_)->readers;
  }
  ~Reader() {
    if (LoanBook::Entry* const entry = book_->find(loan_)) --entry->readers;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[nodiscard]] void* memory() const { return memory_; }

 private:
  const std::shared_ptr<LoanBook> book_;
  const LoanId loan_;
  const std::shared_ptr<device::Machine> devices_;
  void* const memory_;
  const device::PinnedRange pinned_;
};

}  // namespace

LoanId LoanBook::add(std::shared_ptr<device::Machine> devices, const at::Tensor& tensor) {
  entries_[++last_] = {.devices = std::move(devices), .tensor = tensor};
  return last_;
}

LoanBook::Entry* LoanBook::find(LoanId loan) {
  const auto found = entries_.find(loan);
  return found == entries_.end() ? nullptr : &found->second;
}

at::Tensor LoanBook::end(LoanId loan) {
  const auto found = entries_.find(loan);
  if (found == entries_.end()) return {};
  if (tells_ && found->second.readers > 0)
    found->second.devices->tell("loan " + std::to_string(loan) +
                                " ends although its borrower may still read the memory");
  at::Tensor tensor = std::move(found->second.tensor);
  entries_.erase(found);
  return tensor;
}

bool SimulatedLending::lends(WorkerId to, uint64_t) const {
  const auto found = places_.find(to);
  return found != places_.end() && found->second == place_;
}

std::optional<Lent> SimulatedLending::lend(WorkerId, const at::Tensor& tensor) {
  const LoanId loan = book_->add(devices_, tensor);
  return Lent{.loan = loan, .ticket = std::to_string(loan)};
}

Result<at::Tensor> SimulatedLending::borrow(std::string_view ticket, c10::IntArrayRef sizes,
                                            c10::ScalarType dtype, c10::Device) {
  LoanId loan = 0;
  const auto [end, error] = std::from_chars(ticket.data(), ticket.data() + ticket.size(), loan);
  const LoanBook::Entry* const entry = error == std::errc{} ? book_->find(loan) : nullptr;
  if (entry == nullptr) return wrong_arguments("there is no such loan");
  if (entry->tensor.sizes() != sizes || entry->tensor.scalar_type() != dtype)
    return wrong_arguments("the loan is of another size or type");
  auto reader = std::make_shared<Reader>(book_, loan, *entry);
  return at::from_blob(
      reader->memory(), sizes, [reader](void*) {}, at::TensorOptions(dtype));
}

}  // namespace rehearsal::sim
