#include "sim/strategies/strategies.h"

namespace rehearsal::sim {

size_t Pos::pick(const std::vector<Enabled>& enabled) {
  const auto priority = [this](const Enabled& event) {
    return decisions_.choose({.kind = net_fake::DecisionKind::priority,
                              .number = event.serial,
                              .occurrence = redrawn_[event.serial]},
                             kPriorities);
  };
  size_t best = 0;
  uint64_t highest = priority(enabled[0]);
  for (size_t i = 1; i < enabled.size(); ++i) {
    const uint64_t drawn = priority(enabled[i]);
    if (drawn <= highest) continue;
    best = i;
    highest = drawn;
  }
  const Enabled& next = enabled[best];
  std::map<uint64_t, uint64_t> kept;
  for (const Enabled& event : enabled)
    if (event.serial != next.serial)
      kept[event.serial] = redrawn_[event.serial] + (event.worker == next.worker ? 1 : 0);
  redrawn_ = std::move(kept);
  return best;
}

}  // namespace rehearsal::sim
