#include "real_net/worker/process_lending.h"

#include <sys/random.h>
#include <unistd.h>

#include <utility>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

uint64_t drawn_number() {
  uint64_t value = 0;
  REHEARSAL_CHECK(getrandom(&value, sizeof value, 0) == sizeof value);
  return value;
}

// All that workers of this process have lent and not got back. A worker may end before those that
// have borrowed from it. Nobody can guess a ticket: it would read what was lent to others.
class Loans {
 public:
  Lent add(const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    const LoanId loan = ++last_;
    std::string ticket = std::to_string(loan) + "-" + std::to_string(drawn_number());
    by_ticket_[ticket] = tensor;
    tickets_[loan] = ticket;
    return {.loan = loan, .ticket = std::move(ticket)};
  }
  at::Tensor take(LoanId loan) {
    const std::lock_guard lock(mutex_);
    const auto ticket = tickets_.extract(loan);
    return ticket.empty() ? at::Tensor() : by_ticket_.extract(ticket.mapped()).mapped();
  }
  at::Tensor find(std::string_view ticket) const {
    const std::lock_guard lock(mutex_);
    const auto found = by_ticket_.find(ticket);
    return found == by_ticket_.end() ? at::Tensor() : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, at::Tensor, std::less<>> by_ticket_;
  std::map<LoanId, std::string> tickets_;
  LoanId last_ = 0;
};

Loans& of_this_process() {
  static auto* loans = new Loans;  // outlives the last tensor
  return *loans;
}

// Told from every other process, also of other machines.
std::string name_of_process() {
  static const uint64_t drawn = drawn_number();
  return "process " + std::to_string(drawn) + "-" + std::to_string(getpid());
}

}  // namespace

std::string ProcessLending::place() const { return name_of_process(); }

void ProcessLending::meet(WorkerId peer, const std::string& place) {
  const std::lock_guard lock(mutex_);
  here_[peer] = place == name_of_process();
}

bool ProcessLending::lends(WorkerId to, uint64_t bytes) const {
  if (bytes < least_bytes_) return false;
  const std::lock_guard lock(mutex_);
  const auto found = here_.find(to);
  return found != here_.end() && found->second;
}

std::optional<Lent> ProcessLending::lend(WorkerId, const at::Tensor& tensor) {
  return of_this_process().add(tensor);
}

at::Tensor ProcessLending::end(LoanId loan) { return of_this_process().take(loan); }

Result<at::Tensor> ProcessLending::borrow(std::string_view ticket, c10::IntArrayRef sizes,
                                          c10::ScalarType dtype, c10::Device) {
  at::Tensor tensor = of_this_process().find(ticket);
  if (!tensor.defined()) return wrong_arguments("there is no such loan");
  if (tensor.sizes() != sizes || tensor.scalar_type() != dtype)
    return wrong_arguments("the loan is of another size or type");
  return tensor;
}

}  // namespace rehearsal::real
