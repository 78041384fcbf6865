#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/trace.h"
#include "core/node/node.h"
#include "net_fake/decisions.h"

namespace rehearsal::sim {

// One thing that happened at one life of a worker.
struct Observation {
  const Event& event;
  net_fake::LifeId life;
  Incarnation incarnation;
  Instant when{};        // in virtual time, whatever the worker's clock shows
  uint64_t tensors = 0;  // see EventCollector::on_event
  Duration busy_time{};  // for how long its machine was paused or busy: by so much it may be late
  Instant shown{};       // what the worker's own clock shows
};

// One life, as oracles see it.
struct LifeView {
  net_fake::LifeId id;
  std::string_view name;
  Incarnation incarnation;
  const Node* node = nullptr;                 // null: only its events are known
  const NodeCensus* census_at_end = nullptr;  // see Node; null: there is none yet
  bool crashed = false;
  const Status* result = nullptr;  // of its main; null while that runs
  Instant ended{};                 // when its main ended, or it crashed
  uint64_t live_stacks = 0;
  uint64_t timers_at_stop = 0;  // of its runtime, when its node had stopped by itself
  // The label of code that goes on without waiting for anything, as one that asks in a loop does,
  // and how many turns it has had so since it waited last; empty: there is none.
  std::string_view busy_label;
  uint64_t busy_turns = 0;
  // The problems that its simulated devices have found, as in SimulatedDevices::problems; null: it
  // has none.
  const std::vector<std::string>* device_problems = nullptr;
};

// A cluster between two events.
struct ClusterView {
  Instant now{};
  bool calm = false;  // the storm is over
  Instant calm_since{};
  bool disturbed = false;  // a worker crashed, or a partition may have outlasted `peer_timeout`
  // One that is well may have been taken for dead: by a partition or a pause that may have
  // outlasted `peer_timeout`, by a lie, or because the test had somebody give it up or set the
  // network by hand.
  bool may_be_silent = false;
  // No fault happens any more, nor is anything left of one: the storm has been over for twice
  // `peer_timeout`, or has none; and the test neither set the network by hand nor lets a machine
  // stand still.
  bool untroubled = false;
  bool idle = false;  // nothing will ever happen, although not all have ended
  // When the last act happens, or has happened, that the test or the seed has planned: what was
  // given to Cluster::at, a worker that comes back, the end of a pause.
  Instant acts_until{};
  uint64_t turns = 0;           // of the program's code so far
  bool dynamic = false;         // the group is: workers leave while others refer to what they own
  std::vector<LifeView> lives;  // all there were, by worker and life
};

// Takes down what an oracle finds; the first finding of a run ends it.
class Findings {
 public:
  struct Finding {
    std::string oracle;
    std::string object;
    std::string message;
  };

  // `object` names the call, reference, context or worker.
  void fail(std::string_view oracle, std::string object, std::string message) {
    if (!first_) first_ = {std::string(oracle), std::move(object), std::move(message)};
  }
  // The same for what the running code would go on with for ever: it has its node killed at its
  // next call.
  void fail_now(std::string_view oracle, std::string object, std::string message) {
    fail(oracle, std::move(object), std::move(message));
    stops_ = true;
  }
  [[nodiscard]] const std::optional<Finding>& first() const { return first_; }
  [[nodiscard]] bool stops() const { return stops_; }

 private:
  std::optional<Finding> first_;
  bool stops_ = false;
};

// A set of kinds of events.
class EventKinds {
 public:
  constexpr EventKinds(std::initializer_list<EventKind> kinds) {
    for (const EventKind kind : kinds) bits_ |= bit(kind);
  }
  [[nodiscard]] static constexpr EventKinds all() {
    EventKinds every{};
    every.bits_ = ~uint64_t{0};
    return every;
  }
  [[nodiscard]] constexpr EventKinds operator+(const EventKinds& others) const {
    EventKinds both = *this;
    both.bits_ |= others.bits_;
    return both;
  }
  [[nodiscard]] constexpr bool has(EventKind kind) const { return (bits_ & bit(kind)) != 0; }

 private:
  static_assert(kEventKinds <= 64);
  [[nodiscard]] static constexpr uint64_t bit(EventKind kind) {
    return uint64_t{1} << static_cast<int>(kind);
  }
  uint64_t bits_ = 0;
};

// Watches a run for something that must never happen. It sees the events of all nodes in their
// order, and must not change anything. Deterministic: no address, no clock, no order of a hash
// table in what it reports.
class Oracle {
 public:
  virtual ~Oracle() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  // The kinds that `on_event` is called for; asked for once.
  [[nodiscard]] virtual EventKinds watched() const { return EventKinds::all(); }

  // On the node's strand: the node must not be called.
  virtual void on_event(const Observation& seen, Findings& findings) = 0;

  // The life has crashed: its stacks have unwound.
  virtual void on_crash(const LifeView& life) = 0;

  // Between two events, now and then; nodes may be looked at.
  virtual void check(const ClusterView& cluster, Findings& findings) = 0;

  // Every life has ended and nothing will happen any more; the nodes are still there.
  virtual void at_end(const ClusterView& cluster, Findings& findings) = 0;
};

}  // namespace rehearsal::sim
