#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/strategy.h"

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
  // d is drawn: 2 for 4 of 10 runs, 3 for 3, 4 for 2, 5 for one; so is k.
  explicit Pct(net_fake::Decisions& decisions);
  // `change_points` are steps from 1.
  Pct(net_fake::Decisions& decisions, std::vector<uint64_t> change_points, uint64_t length);
  size_t pick(const std::vector<Enabled>& enabled) override;

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

 private:
  net_fake::Decisions& decisions_;
  std::map<uint64_t, uint64_t> redrawn_;  // by serial of the events that are enabled
};

// Delay bounding (Emmi, Qadeer, Rakamarić, POPL 2011): the order of instants, but at two drawn
// steps or one the event that would be next is skipped once.
class Delays final : public Strategy {
 public:
  explicit Delays(net_fake::Decisions& decisions);
  size_t pick(const std::vector<Enabled>& enabled) override;

 private:
  std::vector<uint64_t> skipped_;  // steps from 1
  uint64_t step_ = 0;
};

}  // namespace rehearsal::sim
