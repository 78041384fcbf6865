#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace rehearsal {

class Execution;
class WaitHandle;

// The contents of a node's tables, by name: "rpc.…", "rref.…" and "autograd.…". Numbers, but for
// "rref.table" and "autograd.table", which have a line for each value, holder, fork, name and
// context. "rref.owners" counts a value from when it is made; "rref.shared_owners" those of them
// that other workers refer to, as PyTorch's num_owner_rrefs does. "rpc.executions" are functions
// that run or wait for their turn here, "rpc.waiting" those calls of others that only wait here,
// for the rest of a barrier or for a name to be published.
using DebugInfo = std::map<std::string, std::string>;

// The requests of a worker to its node. On the strand, unless said otherwise.
class WorkerPort {
 public:
  virtual ~WorkerPort() = default;

  [[nodiscard]] virtual DebugInfo debug_info() const = 0;
  [[nodiscard]] virtual std::vector<WorkerId> members() const = 0;

  // Ends the wait when the worker is a member, or when the time is up: `came` says so then. The
  // result ends the wait by an error, if it lasts.
  [[nodiscard]] virtual UniqueFunction<void(const Error&)> await_member(
      WorkerId worker, const std::optional<Instant>& deadline, const WaitHandle& wait,
      Status& came) = 0;

  // The node ends without the others when its main returns. By the main.
  virtual void leave_at_once() = 0;

  // The execution of a thread that the user has started, which has begun.
  [[nodiscard]] virtual std::shared_ptr<Execution> begin_thread(const std::string& name) = 0;

  // Any stack.
  [[nodiscard]] virtual bool is_dynamic() const = 0;
};

}  // namespace rehearsal
