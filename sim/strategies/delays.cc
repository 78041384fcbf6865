#include <algorithm>

#include "sim/strategies/strategies.h"

namespace rehearsal::sim {
namespace {

// The drawn parts of the plan; part of the keys.
constexpr uint64_t kCount = 0;
constexpr uint64_t kFirstStep = 1;

}  // namespace

Delays::Delays(net_fake::Decisions& decisions, const StrategySettings& settings)
    : skipped_(settings.skips) {
  if (!skipped_.empty() || settings.bound == 0u) return;
  const uint64_t length = settings.length ? *settings.length : draw_length(decisions);
  const uint64_t count = 1 + draw_plan(decisions, kCount, settings.bound.value_or(2));
  for (uint64_t i = 0; i < count; ++i)
    skipped_.push_back(1 + draw_plan(decisions, kFirstStep + i, length));
}

size_t Delays::pick(const std::vector<Enabled>& enabled) {
  ++step_;
  const auto skips = std::count(skipped_.begin(), skipped_.end(), step_);
  return std::min<size_t>(static_cast<size_t>(skips), enabled.size() - 1);
}

std::vector<std::vector<uint64_t>> one_deviation_more(const std::vector<uint64_t>& skips,
                                                      const std::vector<uint8_t>& widths) {
  std::vector<std::vector<uint64_t>> result;
  const uint64_t last = skips.empty() ? 1 : skips.back();
  for (uint64_t step = last; step <= widths.size(); ++step) {
    const auto there = std::count(skips.begin(), skips.end(), step);
    if (there + 1 >= widths[step - 1]) continue;
    result.push_back(skips);
    result.back().push_back(step);
  }
  return result;
}

}  // namespace rehearsal::sim
