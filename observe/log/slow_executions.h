#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/trace.h"
#include "observe/log/log.h"

namespace rehearsal::observe {

// Tells, at level warn, of each execution that has run for long without waiting for anything: a
// function that computes, that hangs in a loop, or that waits for a std::mutex; of a method, whose
// object lets no other one in meanwhile. Once, and again when it waits or ends:
//
//   … level=warning worker=ps event=runs_long what=read for_seconds=5 hint="…"
//   … level=warning worker=ps event=ran_long what=read for_seconds=7
//
// An execution that waits is told of, too, while it keeps a monitor for as long, so that no other
// enters:
//
//   … level=warning worker=ps event=holds_long what=read object="the state" for_seconds=5 hint="…"
//   … level=warning worker=ps event=held_long what=read object="the state" for_seconds=7
//
// A worker's main may compute as long as it likes, and is told of after twelve times as long. It
// has no clock: whoever looks at it tells the time, and so its seconds are those of the looks. On
// the strand, as every Trace; the log outlives it.
class SlowExecutions final : public Trace {
 public:
  // `main`: the label of the worker's main, which is its name. `after` zero: nothing is told.
  SlowExecutions(Log& log, std::string main, Duration after)
      : log_(log), main_(std::move(main)), after_(after) {}

  void on_event(const Event& event) override;

  // To be called every now and then, each time later, also while an execution runs.
  void look(Instant now);

  // Those that have been told of and go on.
  [[nodiscard]] uint64_t count() const;

  // After so long an execution is told of.
  [[nodiscard]] Duration after() const { return after_; }

 private:
  struct Running {
    std::string what;
    std::optional<Instant> seen;  // running, first
    bool told = false;
  };
  struct Holding {
    std::string what;
    std::string object;
    bool waits = true;
    std::optional<Instant> seen;  // first
    bool told = false;
  };
  void end(const CausalId& id);
  void begin_to_hold(const Event& parked);
  void end_to_hold(const CausalId& id);
  void look_at_monitors(Instant now);

  Log& log_;
  const std::string main_;
  const Duration after_;
  Instant looked_{};  // last
  std::unordered_map<CausalId, Running, CausalIdHash> running_;
  std::unordered_map<CausalId, Holding, CausalIdHash> holding_;  // as far as it was seen to wait
};

}  // namespace rehearsal::observe
