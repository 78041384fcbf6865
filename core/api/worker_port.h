#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"

namespace rehearsal {

class WaitHandle;

// The contents of a node's tables, by name: "rpc.…", "rref.…" and "autograd.…". Numbers, but for
// "rref.table" and "autograd.table", which have a line for each value, holder, fork and context.
using DebugInfo = std::map<std::string, std::string>;

// The requests of a worker to its node. On the strand, unless said otherwise.
class WorkerPort {
 public:
  virtual ~WorkerPort() = default;

  [[nodiscard]] virtual DebugInfo debug_info() const = 0;
  [[nodiscard]] virtual std::vector<WorkerId> members() const = 0;

  // Ends the wait when the worker is a member, and says so, or when the time is up.
  virtual void await_member(WorkerId worker, const std::optional<Instant>& deadline,
                            const WaitHandle& wait, bool& came) = 0;

  // The node ends without the others when its main returns. By the main.
  virtual void leave_at_once() = 0;

  // Any stack.
  [[nodiscard]] virtual bool is_dynamic() const = 0;
};

}  // namespace rehearsal
