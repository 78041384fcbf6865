#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sim/decisions/keyed_decisions.h"
#include "sim/strategies/strategy.h"

// The strategies, one source file each. `step` counts the choices of a run: the events at which
// more than one could be next.
namespace rehearsal::sim {

// Priorities are drawn from so many: two are hardly ever equal.
inline constexpr uint64_t kPriorities = uint64_t{1} << 40;

// One property of a strategy's plan, in [0, n). A run has one strategy: each numbers its own.
[[nodiscard]] uint64_t draw_plan(net_fake::Decisions& decisions, uint64_t property, uint64_t n);

// A number of choices that a run may have, drawn for strategies that place something among them:
// within each doubling from 64 to 16,384 equally likely.
[[nodiscard]] uint64_t draw_length(net_fake::Decisions& decisions);

class RandomWalk final : public Strategy {
 public:
  explicit RandomWalk(net_fake::Decisions& decisions) : decisions_(decisions) {}
  size_t pick(const std::vector<Enabled>& enabled) override;
  void happened(const net_fake::Chain&) override {}

 private:
  net_fake::Decisions& decisions_;
  uint64_t step_ = 0;
};

// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010) on
// chains of messages: every chain has a priority, the highest one is next, and at d − 1 drawn steps
// the chain that would be next falls below all others, before it is taken. Of w chains and k steps,
// each order that d constraints between chains describe has a probability of at least
// 1 / (w · k^(d−1)). Ten times k steps are fair: from then on it walks at random.
class Pct final : public Strategy {
 public:
  // d, if it is not given, is drawn: 2 for 4 of 10 runs, 3 for 3, 4 for 2, 5 for one; so is k.
  Pct(net_fake::Decisions& decisions, const StrategySettings& settings);
  // `change_points` are steps from 1.
  Pct(net_fake::Decisions& decisions, std::vector<uint64_t> change_points, uint64_t length);
  size_t pick(const std::vector<Enabled>& enabled) override;
  void happened(const net_fake::Chain&) override {}

 private:
  [[nodiscard]] int64_t priority(const net_fake::Chain& chain);
  [[nodiscard]] size_t highest(const std::vector<Enabled>& enabled);

  net_fake::Decisions& decisions_;
  std::vector<uint64_t> change_points_;
  uint64_t length_;
  uint64_t step_ = 0;
  std::map<net_fake::Chain, int64_t> priorities_;
  int64_t lowest_ = 0;  // of those that fell
};

// Partial order sampling (Yuan, Yang, Gu, CAV 2018): every event has a priority, the highest one is
// next, and those that race with it (of the same worker) draw theirs anew.
class Pos final : public Strategy {
 public:
  explicit Pos(net_fake::Decisions& decisions) : decisions_(decisions) {}
  size_t pick(const std::vector<Enabled>& enabled) override;
  void happened(const net_fake::Chain&) override {}

 private:
  net_fake::Decisions& decisions_;
  std::map<uint64_t, uint64_t> redrawn_;  // by serial of the events that are enabled
};

// How many events are still to come, by chain, as an earlier run had them.
class Remaining {
 public:
  explicit Remaining(const std::vector<ChainCount>& counts);

  void happened(const net_fake::Chain& chain);

  // It is there: what it has left is no part of its parent any more.
  void appeared(const net_fake::Chain& chain);

  // Of the chain itself.
  [[nodiscard]] uint64_t own(const net_fake::Chain& chain) const;
  // Of the chain and of those that its events will make.
  [[nodiscard]] uint64_t with_descendants(const net_fake::Chain& chain) const;

 private:
  struct Left {
    uint64_t events = 0;
    bool there = false;
    std::vector<net_fake::Chain> children;
  };
  std::map<net_fake::Chain, Left> left_;
};

// Uniform random walk (Zhao, Ferdowsi, Wang, ASPLOS 2025): the next chain is drawn with a
// probability in proportion to the events that it has left, so that all interleavings of chains
// that do not wait for each other are equally likely. A chain that an event of another makes counts
// as part of that one until it is there. Without counts it walks at random.
class Urw final : public Strategy {
 public:
  Urw(net_fake::Decisions& decisions, const std::vector<ChainCount>& counts)
      : decisions_(decisions), remaining_(counts) {}
  size_t pick(const std::vector<Enabled>& enabled) override;
  void happened(const net_fake::Chain& chain) override { remaining_.happened(chain); }

 private:
  net_fake::Decisions& decisions_;
  Remaining remaining_;
  uint64_t step_ = 0;
};

// Selectively uniform random walk (the same paper): uniform over the interleavings of what arrives
// at one drawn worker. A chain of arrivals is drawn in proportion to what it has left; until its
// next one has happened, the other arrivals wait, and everything else walks at random.
class Surw final : public Strategy {
 public:
  Surw(net_fake::Decisions& decisions, const std::vector<ChainCount>& counts);
  size_t pick(const std::vector<Enabled>& enabled) override;
  void happened(const net_fake::Chain& chain) override;

 private:
  [[nodiscard]] bool selected(const net_fake::Chain& chain) const;
  void intend_one_of(const std::vector<net_fake::Chain>& chains);

  net_fake::Decisions& decisions_;
  Remaining remaining_;
  std::optional<uint32_t> receiver_;          // empty: nobody receives anything
  std::vector<net_fake::Chain> arrivals_;     // its chains
  std::optional<net_fake::Chain> intention_;  // of them; empty: to be drawn
  uint64_t intentions_ = 0;                   // drawn so far
  uint64_t step_ = 0;
};

// Delay bounding (Emmi, Qadeer, Rakamarić, POPL 2011): the order of instants, but at a few steps
// the event that would be next is skipped, once for each time that the step is named. The steps are
// given, or drawn: one or two, or up to the bound.
class Delays final : public Strategy {
 public:
  Delays(net_fake::Decisions& decisions, const StrategySettings& settings);
  size_t pick(const std::vector<Enabled>& enabled) override;
  void happened(const net_fake::Chain&) override {}

 private:
  std::vector<uint64_t> skipped_;  // steps from 1
  uint64_t step_ = 0;
};

// A schedule as deviations from the order of instants, each a decision of its own with a name: the
// n-th event of a chain is held back while so many others go before it. They need no strategy to be
// repeated, and one can be left out without a change of what the others say.
class HeldBack final : public Strategy {
 public:
  // Repeats the deviations that the overrides give.
  explicit HeldBack(KeyedDecisions& decisions) : HeldBack(decisions, nullptr) {}
  // Does what `inner` says, and notes it as deviations; null: the same as above.
  HeldBack(KeyedDecisions& decisions, std::unique_ptr<Strategy> inner)
      : decisions_(decisions), inner_(std::move(inner)) {}
  size_t pick(const std::vector<Enabled>& enabled) override;
  void happened(const net_fake::Chain& chain) override;

 private:
  struct Head {
    uint64_t number = 0;  // of the chain's first event, from 0
    uint64_t passed = 0;  // others that went before it although it was due earlier
    std::optional<uint64_t> limit;
  };
  [[nodiscard]] bool is_held(const net_fake::Chain& chain);

  KeyedDecisions& decisions_;
  const std::unique_ptr<Strategy> inner_;
  std::map<net_fake::Chain, Head> heads_;
};

// The decision that holds back an event of a chain.
[[nodiscard]] Key hold_key(const net_fake::Chain& chain, uint64_t number);

}  // namespace rehearsal::sim
