#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/node_strand.h"
#include "core/session/authority.h"
#include "core/session/session_options.h"
#include "core/values/borrowed.h"
#include "core/wire/message.h"

namespace rehearsal {

// The tensors on devices that one worker has lent to its peers, and those that it has borrowed and
// is to give back. A loan ends once: when its borrower says so. If that is lost it may read the
// memory still, for it need not have ended: such a loan lasts as long as the process. On the
// strand.
class DeviceLoans {
 public:
  // `on_waiting` runs when something waits to be given back: look soon.
  DeviceLoans(const SessionOptions& options, NodeStrand& strand, Task on_waiting);

  // A message has left for a worker, with these loans.
  void leave(WorkerId to, std::vector<LoanId> loans);
  // The borrower has given them back. The error: it has not all of these.
  [[nodiscard]] std::optional<Violation> take_back(WorkerId from, const LoansReturned& returned);
  [[nodiscard]] uint64_t size() const;
  // Nothing more will be heard of its life.
  void lose(WorkerId peer);

  // A message has come, of the life of a worker that speaks now: what it lends is given back.
  void receive(WorkerId from, const Message& message);
  // Whether something is to be given back.
  [[nodiscard]] bool waits() const { return !waiting_.empty() || dying_ > 0; }
  // All that can be given back now: for each worker one message.
  [[nodiscard]] std::vector<std::pair<WorkerId, Message>> look();

  // Nothing more is given back, nor waited for: who has borrowed may read still.
  void stop();

 private:
  struct Waiting {
    WorkerId to;
    uint64_t life = 0;  // as lives_ counts
    Returning returning;
  };
  [[nodiscard]] bool is_copied(const Returning& returning) const;
  void wait(Waiting waiting);
  // The elements die off the strand, since a device's driver may take long; then the rest waits.
  void let_go(Waiting waiting);

  const SessionOptions& options_;
  NodeStrand& strand_;
  Task on_waiting_;
  std::vector<std::set<LoanId>> lent_;  // by the id of the borrower
  std::vector<uint64_t> lives_;         // by the id of a worker: how many it has lost
  std::vector<Waiting> waiting_;
  uint64_t dying_ = 0;  // of which the elements are being let go
};

}  // namespace rehearsal
