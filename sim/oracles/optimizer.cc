#include <string>
#include <unordered_map>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

constexpr std::string_view kStep = "rehearsal.LocalOptimizer.step";

class Optimizer final : public QuietOracle {
 public:
  std::string_view name() const override { return "optimizer"; }
  EventKinds watched() const override {
    return {EventKind::call_executed, EventKind::optimizer_stepped, EventKind::call_completed};
  }

  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    if (event.kind == EventKind::call_executed && event.text == kStep)
      steps_[CausalIdHash{}(event.id)] = {to_string(event.id)};
    if (event.kind == EventKind::optimizer_stepped) stepped(seen, findings);
    if (event.kind == EventKind::call_completed && event.number == 0 && !steps_.empty())
      completed(event, findings);
  }

 private:
  struct Step {
    std::string call;
    bool applied = false;
    bool failed = false;
  };

  void stepped(const Observation& seen, Findings& findings) {
    const auto found = steps_.find(seen.event.number);
    const std::string where = "worker " + std::to_string(seen.life.worker.value);
    if (found == steps_.end())
      return findings.fail(name(), where, "parameters were updated, and no call of a step runs");
    Step& step = found->second;
    if (step.applied) findings.fail(name(), "step " + step.call, where + " has applied it twice");
    step.applied = true;
    step.failed = !seen.event.text.empty();
  }

  void completed(const Event& event, Findings& findings) {
    const auto found = steps_.find(CausalIdHash{}(event.id));
    if (found == steps_.end()) return;
    if (!found->second.applied || found->second.failed)
      findings.fail(name(), "step " + found->second.call,
                    "its caller was told that it is done before it was applied");
  }

  std::unordered_map<uint64_t, Step> steps_;  // by the call; look-up only
};

}  // namespace

std::unique_ptr<Oracle> make_optimizer() { return std::make_unique<Optimizer>(); }

}  // namespace rehearsal::sim
