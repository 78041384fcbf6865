#include "sim/strategies/strategy.h"

#include "sim/strategies/strategies.h"

namespace rehearsal::sim {
namespace {

// Distinguishes the choice of a strategy from a seed's other hashes.
constexpr uint64_t kPortfolio = 0x706f7274666f6c69;

constexpr uint64_t kLengthProperty = uint64_t{1} << 32;  // beyond those of any plan

}  // namespace

std::unique_ptr<Strategy> make_strategy(const StrategySettings& settings,
                                        net_fake::Decisions& decisions) {
  switch (settings.kind) {
    case StrategyKind::timed_swarm:
      return nullptr;
    case StrategyKind::random_walk:
      return std::make_unique<RandomWalk>(decisions);
    case StrategyKind::pct:
      return std::make_unique<Pct>(decisions, settings);
    case StrategyKind::pos:
      return std::make_unique<Pos>(decisions);
    case StrategyKind::urw:
      return std::make_unique<Urw>(decisions, settings.counts);
    case StrategyKind::surw:
      return std::make_unique<Surw>(decisions, settings.counts);
    case StrategyKind::delays:
      return std::make_unique<Delays>(decisions, settings);
  }
  return nullptr;
}

StrategyKind portfolio_strategy(Seed seed) {
  const uint64_t place = mix(seed.value, kPortfolio) % 40;
  if (place < 18) return StrategyKind::timed_swarm;
  if (place < 28) return StrategyKind::pct;
  if (place < 34) return StrategyKind::random_walk;
  if (place < 38) return StrategyKind::pos;
  return place < 39 ? StrategyKind::urw : StrategyKind::surw;
}

bool portfolio_guides(Seed seed) { return mix(seed.value, kPortfolio) % 40 < 4; }

uint64_t draw_plan(net_fake::Decisions& decisions, uint64_t property, uint64_t n) {
  return decisions.choose({.kind = net_fake::DecisionKind::plan, .number = property}, n);
}

uint64_t draw_length(net_fake::Decisions& decisions) {
  constexpr uint64_t kDoublings = 8;
  return net_fake::in_doublings(64, draw_plan(decisions, kLengthProperty, kDoublings << 10), 10);
}

}  // namespace rehearsal::sim
