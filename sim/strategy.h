#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"
#include "net_fake/decisions.h"
#include "net_fake/schedule.h"

namespace rehearsal::sim {

// What may happen next: the first event of one chain.
struct Enabled {
  net_fake::Chain chain;
  WorkerId worker;  // whose event it is
  Instant when{};
  uint64_t serial = 0;  // names the event in its run
};

// Decides in which order events happen. Every choice it makes is a decision of the run, so that a
// run stays a function of program, seed, options and overrides.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // The place in `enabled` of the event that happens next. There are at least two, in the order in
  // which they are due: place 0 is what would happen without a strategy.
  [[nodiscard]] virtual size_t pick(const std::vector<Enabled>& enabled) = 0;
};

enum class StrategyKind : uint8_t {
  timed_swarm,  // no reordering: latencies and faults alone, as the seed draws them
  random_walk,  // whatever may be next is equally likely
  pct,          // probabilistic concurrency testing: ordering bugs of small depth
  pos,          // partial order sampling: priorities drawn anew where events race
  delays,       // the order of instants with a few deviations
};
inline constexpr StrategyKind kStrategyKinds[] = {StrategyKind::timed_swarm,
                                                  StrategyKind::random_walk, StrategyKind::pct,
                                                  StrategyKind::pos, StrategyKind::delays};

// As the command line has it: "timed-swarm", "random-walk", "pct", "pos", "delays".
[[nodiscard]] std::string_view name_of(StrategyKind kind);
[[nodiscard]] std::optional<StrategyKind> strategy_named(std::string_view name);

// The strategy of one run; null for timed_swarm. `decisions` outlives it.
[[nodiscard]] std::unique_ptr<Strategy> make_strategy(StrategyKind kind,
                                                      net_fake::Decisions& decisions);

// The strategy that a search gives to this seed: 8 of 20 seeds the timed swarm, 6 PCT, 3 a random
// walk, 2 POS, 1 delays.
[[nodiscard]] StrategyKind portfolio_strategy(Seed seed);

}  // namespace rehearsal::sim
