#include <algorithm>

#include "sim/strategies/strategies.h"

namespace rehearsal::sim {
namespace {

using net_fake::DecisionKind;

// The drawn parts of the plan; part of the keys.
constexpr uint64_t kDepth = 0;
constexpr uint64_t kFirstChangePoint = 1;

constexpr uint64_t kFairAfter = 10;  // times the length

uint64_t draw_depth(net_fake::Decisions& decisions) {
  constexpr uint64_t kDepths[] = {2, 2, 2, 2, 3, 3, 3, 4, 4, 5};
  return kDepths[draw_plan(decisions, kDepth, std::size(kDepths))];
}

std::vector<uint64_t> draw_change_points(net_fake::Decisions& decisions, uint64_t depth,
                                         uint64_t length) {
  std::vector<uint64_t> points;
  for (uint64_t i = 0; i + 1 < depth; ++i)
    points.push_back(1 + draw_plan(decisions, kFirstChangePoint + i, length));
  return points;
}

}  // namespace

Pct::Pct(net_fake::Decisions& decisions, const StrategySettings& settings)
    : Pct(decisions, {}, settings.length ? *settings.length : draw_length(decisions)) {
  change_points_ = draw_change_points(
      decisions, settings.depth ? *settings.depth : draw_depth(decisions), length_);
}

Pct::Pct(net_fake::Decisions& decisions, std::vector<uint64_t> change_points, uint64_t length)
    : decisions_(decisions), change_points_(std::move(change_points)), length_(length) {}

int64_t Pct::priority(const net_fake::Chain& chain) {
  const auto [place, fresh] = priorities_.try_emplace(chain);
  if (fresh)
    place->second = static_cast<int64_t>(
        decisions_.choose({.kind = DecisionKind::priority,
                           .subject = {.worker = WorkerId{chain.first}, .life = chain.second},
                           .number = static_cast<uint64_t>(chain.kind)},
                          kPriorities));
  return place->second;
}

size_t Pct::highest(const std::vector<Enabled>& enabled) {
  size_t best = 0;
  for (size_t i = 1; i < enabled.size(); ++i)
    if (priority(enabled[i].chain) > priority(enabled[best].chain)) best = i;
  return best;
}

size_t Pct::pick(const std::vector<Enabled>& enabled) {
  ++step_;
  if (step_ > kFairAfter * length_)
    return decisions_.choose({.kind = DecisionKind::pick, .number = step_}, enabled.size());
  size_t best = highest(enabled);
  for (auto falls = std::count(change_points_.begin(), change_points_.end(), step_); falls > 0;
       --falls) {
    priorities_[enabled[best].chain] = --lowest_;
    best = highest(enabled);
  }
  return best;
}

}  // namespace rehearsal::sim
