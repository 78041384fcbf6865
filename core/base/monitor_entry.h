#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "core/base/node_strand.h"

namespace rehearsal {

// Ends the wait of `execution` when it is in the monitor, which it gives up while it parks, as
// methods do; an execution that is in another one keeps this one meanwhile. False: it is in it
// already, and must not leave it. Null for what is no execution. On the strand.
[[nodiscard]] bool enter_monitor(const std::shared_ptr<Monitor>& monitor, Execution* execution,
                                 const WaitHandle& wait);
void leave_monitor(const std::shared_ptr<Monitor>& monitor, Execution* execution);

// The calling stack is in the monitor for as long as this lives, and in the streams of the value
// that it guards. The constructor parks until it is its turn; throws RpcError.
class InMonitor {
 public:
  // `what` is waited for and guarded, for people; it must outlive the execution.
  InMonitor(std::shared_ptr<NodeStrand> strand, std::shared_ptr<Monitor> monitor,
            std::string_view what);
  ~InMonitor();
  InMonitor(const InMonitor&) = delete;
  InMonitor& operator=(const InMonitor&) = delete;

 private:
  const std::shared_ptr<NodeStrand> strand_;
  const std::shared_ptr<Monitor> monitor_;
  Execution* const execution_;
  bool entered_ = false;
  bool keeps_ = false;  // also while it parks
  std::optional<BetweenStreams> in_;
};

}  // namespace rehearsal
