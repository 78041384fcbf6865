#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"
#include "net_fake/decisions.h"
#include "net_fake/schedule.h"
#include "sim/strategies/profile.h"

namespace rehearsal::sim {

// A candidate to happen next: the first event of one chain.
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

  // The first event of this chain happens now, chosen or because there was no other.
  virtual void happened(const net_fake::Chain& chain) = 0;
};

enum class StrategyKind : uint8_t {
  timed_swarm,  // no reordering: latencies and faults alone, as the seed draws them
  random_walk,  // whatever may be next is equally likely
  pct,          // probabilistic concurrency testing: ordering bugs of small depth
  pos,          // partial order sampling: priorities drawn anew where events race
  urw,          // uniform random walk: every interleaving of the chains is equally likely
  surw,         // the same for what arrives at one worker, whatever else happens in between
  delays,       // the order of instants with a few deviations
};
inline constexpr StrategyKind kStrategyKinds[] = {
    StrategyKind::timed_swarm, StrategyKind::random_walk, StrategyKind::pct,   StrategyKind::pos,
    StrategyKind::urw,         StrategyKind::surw,        StrategyKind::delays};

// A strategy, with what it has learnt from other runs or was told; what is missing it draws.
struct StrategySettings {
  StrategyKind kind = StrategyKind::timed_swarm;
  std::optional<uint64_t> depth;   // pct: d
  std::optional<uint64_t> length;  // pct, delays: k, the number of choices that a run has
  std::optional<uint64_t> bound;   // delays: as many deviations at most
  std::vector<uint64_t> skips;     // delays: at these choices, from 1, in order; not drawn
  std::vector<ChainCount> counts;  // urw, surw: how many events each chain has

  // Not explicit: a kind alone is the usual case.
  StrategySettings(StrategyKind the_kind = StrategyKind::timed_swarm) : kind(the_kind) {}
};

// As the command line has it: "timed-swarm", "random-walk", "pct", and so on.
[[nodiscard]] std::string_view name_of(StrategyKind kind);
[[nodiscard]] std::optional<StrategyKind> strategy_named(std::string_view name);

// NAME[:k=v,…], for example `pct:d=3,k=480` or `delays:skip=17.40`.
[[nodiscard]] std::string to_string(const StrategySettings& settings);
// Throws std::invalid_argument with a line that says what is wrong.
[[nodiscard]] StrategySettings parse_strategy(std::string_view text);

// The strategy of one run; null for timed_swarm. `decisions` outlives it.
[[nodiscard]] std::unique_ptr<Strategy> make_strategy(const StrategySettings& settings,
                                                      net_fake::Decisions& decisions);

// For an enumeration of all schedules within a bound of deviations from the order of instants:
// where one more may come behind those in `skips`, as lists of steps. With several at one step, so
// many events are skipped there. `widths`: how many events each choice of the run with `skips` was
// of.
[[nodiscard]] std::vector<std::vector<uint64_t>> one_deviation_more(
    const std::vector<uint64_t>& skips, const std::vector<uint8_t>& widths);

// The strategy that a search gives to this seed: of 40 seeds 18 the timed swarm, 10 PCT, 6 a random
// walk, 4 POS, one URW and one SURW. Of the 18, four are guided where a search can: it goes on from
// an earlier run that showed something new.
[[nodiscard]] StrategyKind portfolio_strategy(Seed seed);
[[nodiscard]] bool portfolio_guides(Seed seed);

}  // namespace rehearsal::sim
