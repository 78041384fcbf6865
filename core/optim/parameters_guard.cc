#include "core/optim/parameters_guard.h"

namespace rehearsal {

ParametersGuard::ParametersGuard(const Caller& caller)
    : strand_(*caller.strand()), contexts_(caller.contexts()) {
  const Status entered = strand_.wait("its turn to change parameters", {}, [this](WaitHandle wait) {
    Monitor& monitor = contexts_.parameters_monitor();
    monitor.enter([wait, &monitor] {
      if (!wait.lasts()) return monitor.leave();
      wait.end();
    });
  });
  if (!entered.ok()) throw RpcError(entered.error());
}

ParametersGuard::~ParametersGuard() {
  strand_.post([&contexts = contexts_] { contexts.parameters_monitor().leave(); });
}

}  // namespace rehearsal
