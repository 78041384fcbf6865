#include "core/session/device_loans.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <map>

namespace rehearsal {
namespace {

const Payload* payload_in(const Message& message) {
  if (const auto* call = std::get_if<Call>(&message.content)) return &call->arguments;
  if (const auto* response = std::get_if<Response>(&message.content)) return &response->value;
  if (const auto* item = std::get_if<Item>(&message.content)) return &item->value;
  if (const auto* end = std::get_if<End>(&message.content)) return &end->value;
  if (const auto* gradients = std::get_if<Gradients>(&message.content))
    return &gradients->gradients;
  return nullptr;
}

}  // namespace

DeviceLoans::DeviceLoans(const SessionOptions& options, NodeStrand& strand, Task on_waiting)
    : options_(options),
      strand_(strand),
      on_waiting_(std::move(on_waiting)),
      lent_(options.names.size()),
      lives_(options.names.size()) {}

void DeviceLoans::leave(WorkerId to, std::vector<LoanId> loans) {
  for (const LoanId loan : loans) {
    if (options_.mutants.on(Mutant::loan_ends_when_it_leaves)) (void)strand_.lending()->end(loan);
    lent_[to.value].insert(loan);
  }
}

std::optional<Violation> DeviceLoans::take_back(WorkerId from, const LoansReturned& returned) {
  std::set<LoanId>& lent = lent_[from.value];
  for (const LoanId loan : returned.loans) {
    if (lent.erase(loan) == 0) return Violation{"LoansReturned.loans", "were not lent to it"};
    if (options_.mutants.on(Mutant::loan_ends_when_it_leaves)) continue;
    strand_.release_later(std::make_shared<at::Tensor>(strand_.lending()->end(loan)));
  }
  return std::nullopt;
}

uint64_t DeviceLoans::size() const {
  uint64_t loans = 0;
  for (const std::set<LoanId>& lent : lent_) loans += lent.size();
  return loans;
}

void DeviceLoans::lose(WorkerId peer) {
  std::set<LoanId>& lent = lent_[peer.value];
  if (options_.mutants.on(Mutant::loans_of_the_lost_end))
    for (const LoanId loan : lent) (void)strand_.lending()->end(loan);
  if (!lent.empty()) strand_.mark("a worker is lost that had borrowed");
  lent.clear();
  ++lives_[peer.value];
}

void DeviceLoans::receive(WorkerId from, const Message& message) {
  const Payload* const payload = payload_in(message);
  if (payload == nullptr || payload->devices == nullptr) return;
  for (const std::shared_ptr<Borrowed>& one : payload->devices->borrowed) {
    if (one == nullptr) continue;
    one->set_give_back([this, strand = strand_.shared_from_this(), from,
                        life = lives_[from.value]](Returning returning) {
      strand->post([this, from, life, returning = std::move(returning)]() mutable {
        wait({from, life, std::move(returning)});
      });
    });
  }
}

void DeviceLoans::wait(Waiting waiting) {
  waiting_.push_back(std::move(waiting));
  on_waiting_();
}

void DeviceLoans::let_go(Waiting waiting) {
  ++dying_;
  auto used = std::make_shared<Returning>(std::move(waiting.returning));
  Waiting over{waiting.to, waiting.life, {.loan = used->loan, .copied = nullptr, .elements = {}}};
  strand_.release_then(std::move(used), [this, over = std::move(over)]() mutable {
    --dying_;
    wait(std::move(over));
  });
}

// A device that has failed reads no more.
bool DeviceLoans::is_copied(const Returning& returning) const {
  if (returning.copied == nullptr) return true;
  if (options_.mutants.on(Mutant::returned_before_it_is_copied)) return true;
  try {
    return returning.copied->reached();
  } catch (const c10::Error&) {
    return true;
  }
}

std::vector<std::pair<WorkerId, Message>> DeviceLoans::look() {
  const auto done = std::stable_partition(
      waiting_.begin(), waiting_.end(),
      [this](const Waiting& waiting) { return !is_copied(waiting.returning); });
  std::map<WorkerId, std::set<LoanId>> returned;
  std::vector<Waiting> over(std::make_move_iterator(done), std::make_move_iterator(waiting_.end()));
  waiting_.erase(done, waiting_.end());
  for (Waiting& waiting : over) {
    // The memory is let go before the lender may use it again.
    if (waiting.returning.elements.defined())
      let_go(std::move(waiting));
    else if (waiting.life == lives_[waiting.to.value])
      returned[waiting.to].insert(waiting.returning.loan);
  }
  std::vector<std::pair<WorkerId, Message>> messages;
  for (const auto& [to, loans] : returned)
    messages.emplace_back(to, Message{LoansReturned{{loans.begin(), loans.end()}}});
  return messages;
}

void DeviceLoans::stop() {
  for (std::set<LoanId>& lent : lent_) lent.clear();
  if (waiting_.empty()) return;
  strand_.release_later(std::make_shared<std::vector<Waiting>>(std::exchange(waiting_, {})));
}

}  // namespace rehearsal
