#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/trace.h"
#include "observe/log/log.h"

namespace rehearsal::observe {

// Tells, at level info, of each backward pass that this worker has been in for long, and what it
// waits for; again after each such time, as long as the pass goes on:
//
//   … level=info worker=ps event=pass_waits context=5f19dbb7#8 epoch=3 starter=trainer
//     for_seconds=5 waits="1 send function without gradients …"
//
// It has no clock: whoever looks at it tells the time, and so its seconds are those of the looks.
// On the strand, as every Trace; the log outlives it.
class SlowPasses final : public Trace {
 public:
  // Gives a line for each pass of this worker: `head`, and what the pass waits for.
  using Waits = std::function<std::string()>;

  // `names`: of all workers, in rank order. `after` zero: nothing is told.
  SlowPasses(Log& log, std::vector<std::string> names, Duration after)
      : log_(log), names_(std::move(names)), after_(after) {}

  // "backward pass 3 of context 5f19dbb7#8 by 'trainer': "
  [[nodiscard]] static std::string head(const std::string& context, uint64_t epoch,
                                        const std::string& starter);

  void on_event(const Event& event) override;

  // To be called every now and then, each time later. `waits` is asked only if there is something
  // to tell.
  void look(Instant now, const Waits& waits);

 private:
  using Pass = std::tuple<CausalId, uint64_t, WorkerId>;  // context, epoch, starter
  struct Running {
    std::optional<Instant> seen;  // first
    uint64_t told = 0;            // times
  };

  Log& log_;
  const std::vector<std::string> names_;
  const Duration after_;
  std::map<Pass, Running> running_;
};

}  // namespace rehearsal::observe
