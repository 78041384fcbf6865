#pragma once

#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/buffer_pool.h"
#include "core/base/runtime.h"
#include "net_fake/fake_transport.h"
#include "net_fake/network.h"
#include "tests/conformance/recording_sink.h"

namespace rehearsal::net_fake {

inline constexpr WorkerId kZero{0};
inline constexpr WorkerId kOne{1};

// Virtual time for tests: a sorted list of events.
class ToySchedule final : public Schedule {
 public:
  Instant now() const override { return now_; }
  void at(Instant when, Occurrence& what, uint64_t ticket) override {
    events_[{std::max(when, now_), ++serial_}] = {&what, ticket};
  }
  // Runs the next event that is due; false if there is none up to `limit`.
  bool step(Instant limit) {
    while (!events_.empty() && events_.begin()->first.first <= limit) {
      const auto [when, event] = *events_.begin();
      events_.erase(events_.begin());
      if (!event.first->due(event.second)) continue;
      now_ = when.first;
      event.first->happen(event.second);
      return true;
    }
    return false;
  }
  void advance(Duration time) {
    const Instant end = now_ + time;
    while (step(end)) {
    }
    now_ = end;
  }
  [[nodiscard]] size_t events() const { return events_.size(); }

 private:
  Instant now_{};
  uint64_t serial_ = 0;
  std::map<std::pair<Instant, uint64_t>, std::pair<Occurrence*, uint64_t>> events_;
};

// A strand without anything else.
class ToyRuntime final : public Runtime {
 public:
  explicit ToyRuntime(const Schedule& schedule) : schedule_(schedule) {}
  Instant now() const override { return schedule_.now(); }
  void post(Task task) override {
    tasks_.push_back(std::move(task));
    if (busy_) return;
    busy_ = true;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      Task next = std::move(tasks_[i]);
      next();
    }
    tasks_.clear();
    busy_ = false;
  }
  TimerId call_at(Instant, Task) override { throw std::logic_error("no timers here"); }
  void cancel(TimerId) override { throw std::logic_error("no timers here"); }
  void execute(Execution&, StackPlacement, Task) override {
    throw std::logic_error("no executions here");
  }
  ParkOutcome park(Waiter&) override { return ParkOutcome::would_park; }
  void wake(Waiter&) override { throw std::logic_error("nobody parks here"); }
  bool wake_by_code(Waiter&) override { throw std::logic_error("nobody parks here"); }

 private:
  const Schedule& schedule_;
  std::vector<Task> tasks_;
  bool busy_ = false;
};

class CountingPool final : public BufferPool {
 public:
  Segment take(uint64_t bytes, SegmentUse use) override {
    ++taken_;
    const size_t rounded = (bytes + 63) / 64 * 64;
    std::shared_ptr<void> owner(std::aligned_alloc(64, std::max<size_t>(rounded, 64)), std::free);
    auto* data = static_cast<std::byte*>(owner.get());
    return {.owner = std::move(owner), .data = data, .bytes = bytes, .use = use};
  }
  [[nodiscard]] uint64_t taken() const { return taken_; }

 private:
  uint64_t taken_ = 0;
};

// Choices by a hash of seed and key, unless a test has set the answer for a kind.
class ToyDecisions final : public Decisions {
 public:
  explicit ToyDecisions(Seed seed = Seed{1}) : seed_(seed) {}
  uint64_t choose(const Key& key, uint64_t n) override {
    asked.push_back(key);
    const auto fixed = answers.find(key.kind);
    if (fixed != answers.end()) return fixed->second(key, n);
    return static_cast<uint64_t>(static_cast<unsigned __int128>(hash_of(seed_, key)) * n >> 64);
  }
  std::map<DecisionKind, std::function<uint64_t(const Key&, uint64_t)>> answers;
  std::vector<Key> asked;

 private:
  Seed seed_;
};

// A few workers on a fake network, with every part in reach.
class FakeCluster {
 public:
  explicit FakeCluster(std::vector<std::string> names, NetworkOptions options = {},
                       Seed seed = Seed{1})
      : decisions(seed), network(schedule, decisions, names, options) {
    for (uint32_t i = 0; i < names.size(); ++i) {
      workers_.push_back(std::make_unique<Member>());
      begin_life(WorkerId{i}, 0);
    }
  }
  ~FakeCluster() {
    for (const auto& life : lives_) life->transport.crash();
  }

  FakeTransport& transport(uint32_t worker) { return workers_[worker]->life->transport; }
  conformance::RecordingSink& sink(uint32_t worker) { return workers_[worker]->sink; }
  CountingPool& pool(uint32_t worker) { return workers_[worker]->pool; }
  void run(uint32_t worker, Task task) { workers_[worker]->life->runtime.post(std::move(task)); }

  void open_all() {
    for (uint32_t one = 0; one < workers_.size(); ++one)
      for (uint32_t other = 0; other < workers_.size(); ++other)
        if (one != other) transport(one).open(WorkerId{other});
    schedule.advance(std::chrono::milliseconds(5));
  }
  void crash(uint32_t worker) { transport(worker).crash(); }
  void restart(uint32_t worker) { begin_life(WorkerId{worker}, transport(worker).life().life + 1); }
  bool advance_until(const std::function<bool()>& holds) {
    const Instant limit = schedule.now() + std::chrono::seconds(60);
    while (!holds())
      if (!schedule.step(limit)) return holds();
    return true;
  }

  ToySchedule schedule;
  ToyDecisions decisions;
  Network network;

 private:
  struct Life {
    Life(FakeCluster& cluster, WorkerId worker, uint32_t number, BufferPool& pool)
        : runtime(cluster.schedule),
          transport(cluster.network, worker, {.life = number, .runtime = &runtime, .pool = &pool}) {
    }
    ToyRuntime runtime;
    FakeTransport transport;
  };
  struct Member {
    CountingPool pool;
    conformance::RecordingSink sink;
    Life* life = nullptr;
  };
  void begin_life(WorkerId worker, uint32_t number) {
    Member& member = *workers_[worker.value];
    lives_.push_back(std::make_unique<Life>(*this, worker, number, member.pool));
    member.life = lives_.back().get();
    const Incarnation incarnation{mix(worker.value + 1, number)};
    member.life->transport.start({.worker = worker,
                                  .incarnation = incarnation,
                                  .greeting = "hello from " + network.names()[worker.value]},
                                 member.sink);
  }

  std::vector<std::unique_ptr<Member>> workers_;
  std::vector<std::unique_ptr<Life>> lives_;
};

}  // namespace rehearsal::net_fake
