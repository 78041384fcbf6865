#include "sim/strategy.h"

#include "sim/strategies/strategies.h"

namespace rehearsal::sim {
namespace {

constexpr std::string_view kNames[] = {"timed-swarm", "random-walk", "pct", "pos", "delays"};
static_assert(std::size(kNames) == std::size(kStrategyKinds));

// Distinguishes the choice of a strategy from a seed's other hashes.
constexpr uint64_t kPortfolio = 0x706f7274666f6c69;

constexpr uint64_t kLengthProperty = uint64_t{1} << 32;  // beyond those of any plan

}  // namespace

std::string_view name_of(StrategyKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<StrategyKind> strategy_named(std::string_view name) {
  for (const StrategyKind kind : kStrategyKinds)
    if (name == name_of(kind)) return kind;
  return std::nullopt;
}

std::unique_ptr<Strategy> make_strategy(StrategyKind kind, net_fake::Decisions& decisions) {
  switch (kind) {
    case StrategyKind::timed_swarm:
      return nullptr;
    case StrategyKind::random_walk:
      return std::make_unique<RandomWalk>(decisions);
    case StrategyKind::pct:
      return std::make_unique<Pct>(decisions);
    case StrategyKind::pos:
      return std::make_unique<Pos>(decisions);
    case StrategyKind::delays:
      return std::make_unique<Delays>(decisions);
  }
  return nullptr;
}

StrategyKind portfolio_strategy(Seed seed) {
  const uint64_t place = mix(seed.value, kPortfolio) % 20;
  if (place < 8) return StrategyKind::timed_swarm;
  if (place < 14) return StrategyKind::pct;
  if (place < 17) return StrategyKind::random_walk;
  return place < 19 ? StrategyKind::pos : StrategyKind::delays;
}

uint64_t draw_plan(net_fake::Decisions& decisions, uint64_t property, uint64_t n) {
  return decisions.choose({.kind = net_fake::DecisionKind::plan, .number = property}, n);
}

uint64_t draw_length(net_fake::Decisions& decisions) {
  constexpr uint64_t kDoublings = 8;
  return net_fake::in_doublings(64, draw_plan(decisions, kLengthProperty, kDoublings << 10), 10);
}

}  // namespace rehearsal::sim
