#include "core/base/monitor_entry.h"

#include "core/base/result.h"

namespace rehearsal {

bool enter_monitor(const std::shared_ptr<Monitor>& monitor, Execution* execution,
                   const WaitHandle& wait) {
  if (execution != nullptr && execution->monitor == monitor) {
    wait.end();
    return false;
  }
  if (execution != nullptr && !execution->monitor) {
    execution->monitor = monitor;
    wait.end();  // Once it is in the monitor.
  } else {
    monitor->enter([wait] { wait.end(); });
  }
  return true;
}

void leave_monitor(const std::shared_ptr<Monitor>& monitor, Execution* execution) {
  if (execution != nullptr && execution->monitor == monitor) execution->monitor.reset();
  monitor->leave();
}

InMonitor::InMonitor(std::shared_ptr<NodeStrand> strand, std::shared_ptr<Monitor> monitor,
                     std::string_view what)
    : strand_(std::move(strand)),
      monitor_(std::move(monitor)),
      execution_(strand_->running_or_null()) {
  const Status status = strand_->wait(what, {}, [this](WaitHandle wait) {
    entered_ = enter_monitor(monitor_, execution_, wait);
    keeps_ = entered_ && execution_ != nullptr && execution_->monitor != monitor_;
  });
  if (!status.ok()) throw RpcError(status.error());
  if (!strand_->mutants().on(Mutant::state_in_other_streams))
    in_.emplace(strand_->devices(), monitor_->streams());
  if (!keeps_) return;
  strand_->post([execution = execution_, what] {
    ++execution->monitors_kept;
    execution->kept_for = what;
  });
}

InMonitor::~InMonitor() {
  in_.reset();
  if (!entered_) return;
  strand_->post([monitor = monitor_, execution = execution_, keeps = keeps_] {
    if (keeps) --execution->monitors_kept;
    leave_monitor(monitor, execution);
  });
}

}  // namespace rehearsal
