#include <algorithm>

#include "sim/strategies/strategies.h"

namespace rehearsal::sim {
namespace {

// What of the plan is drawn; part of the keys. PCT has others: a run has one strategy.
enum class Property : uint64_t { count, first_step };

}  // namespace

Delays::Delays(net_fake::Decisions& decisions) {
  const uint64_t length = draw_length(decisions);
  const auto draw = [&decisions](Property property, uint64_t i, uint64_t n) {
    return decisions.choose(
        {.kind = net_fake::DecisionKind::plan, .number = static_cast<uint64_t>(property) + i}, n);
  };
  const uint64_t count = 1 + draw(Property::count, 0, 2);
  for (uint64_t i = 0; i < count; ++i)
    skipped_.push_back(1 + draw(Property::first_step, i, length));
}

size_t Delays::pick(const std::vector<Enabled>& enabled) {
  ++step_;
  const auto skips = std::count(skipped_.begin(), skipped_.end(), step_);
  return std::min<size_t>(static_cast<size_t>(skips), enabled.size() - 1);
}

}  // namespace rehearsal::sim
