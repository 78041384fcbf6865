#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "net_fake/decisions.h"
#include "net_fake/link_model.h"
#include "net_fake/partitions.h"
#include "net_fake/schedule.h"

namespace rehearsal::net_fake {

struct NetworkStats;

// Partitions and clogs that come by chance and go by themselves. One may begin at each message; no
// other begins while one holds, nor for a drawn gap behind it.
//
// A partition stops what it cuts: one way between two workers, one link, one worker, a split of all
// (each by a coin, or so that every size of the sides is equally likely), a ring, or two sides with
// one worker between. A clog slows or jams: one way, one link, all links of one worker, or the
// links of several workers one after another, to be freed in another order.
class Trouble final : private Occurrence {
 public:
  struct Parts {
    Schedule& schedule;
    Decisions& decisions;
    Partitions& partitions;
    NetworkStats& stats;
    std::function<void()> on_change;  // the partitions have changed
  };
  // Of so many workers.
  Trouble(Parts parts, uint32_t workers) : parts_(std::move(parts)), workers_(workers) {}

  // A message is about to travel from `key.subject` to `key.object`, with this number and attempt.
  void consider(const Weather& weather, const Key& message);

  // The links of these workers are clogged one after another in the first half of `length`, and
  // freed in the second, in an order that is drawn.
  void swizzle(const std::vector<WorkerId>& workers, Duration length, Effect effect);

  // Nothing that was planned begins any more.
  void call_off() { plans_.clear(); }

 private:
  struct Plan {
    uint64_t number = 0;
    Partition partition;
    PartitionId begun;  // zero: not yet
  };
  void partition(const Weather& weather, const Key& message);
  void clog(const Weather& weather, const Key& message);
  [[nodiscard]] Partition drawn_partition(const Key& message);
  [[nodiscard]] Partition split_by_coin(WorkerId from, WorkerId to);
  [[nodiscard]] Partition split_by_size(WorkerId from, WorkerId to);
  [[nodiscard]] Partition ring();
  [[nodiscard]] Partition pair(WorkerId from, WorkerId to, Partition::Shape shape) const;
  [[nodiscard]] Partition alone(WorkerId worker) const;
  [[nodiscard]] std::vector<WorkerId> shuffled();
  [[nodiscard]] Duration length(const Weather& weather, const Key& message, DecisionKind kind);
  [[nodiscard]] uint64_t choose(const Key& message, DecisionKind kind, uint64_t n);
  [[nodiscard]] uint64_t choose_for(WorkerId worker, uint64_t n);

  // `partition` holds from now + `begin` to now + `end`.
  void plan(Partition partition, Duration begin, Duration end);
  [[nodiscard]] Plan* find(uint64_t number);
  [[nodiscard]] const Plan* find(uint64_t number) const;

  // A ticket is the number of a plan, doubled, and one more for its end.
  WorkerId worker(uint64_t) const override { return WorkerId{0}; }
  bool due(uint64_t ticket) const override { return find(ticket / 2) != nullptr; }
  void happen(uint64_t ticket) override;

  Parts parts_;
  const uint32_t workers_;
  std::vector<Plan> plans_;
  uint64_t planned_ = 0;
  uint64_t begun_ = 0;  // partitions and clogs: names the choices about single workers
  Instant next_{};      // none begins before
};

}  // namespace rehearsal::net_fake
