#include "sim/strategies/strategies.h"

namespace rehearsal::sim {

size_t RandomWalk::pick(const std::vector<Enabled>& enabled) {
  return decisions_.choose({.kind = net_fake::DecisionKind::pick, .number = ++step_},
                           enabled.size());
}

}  // namespace rehearsal::sim
