#include <algorithm>

#include "sim/strategies/strategies.h"

namespace rehearsal::sim {
namespace {

// What of the plan is drawn; part of the keys.
constexpr uint64_t kCount = 0;
constexpr uint64_t kFirstStep = 1;

}  // namespace

Delays::Delays(net_fake::Decisions& decisions) {
  const uint64_t length = draw_length(decisions);
  const uint64_t count = 1 + draw_plan(decisions, kCount, 2);
  for (uint64_t i = 0; i < count; ++i)
    skipped_.push_back(1 + draw_plan(decisions, kFirstStep + i, length));
}

size_t Delays::pick(const std::vector<Enabled>& enabled) {
  ++step_;
  const auto skips = std::count(skipped_.begin(), skipped_.end(), step_);
  return std::min<size_t>(static_cast<size_t>(skips), enabled.size() - 1);
}

}  // namespace rehearsal::sim
