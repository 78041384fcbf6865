#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

constexpr uint64_t kTimedOut = 1 + static_cast<uint64_t>(ErrorKind::timeout);

class Completion final : public QuietOracle {
 public:
  explicit Completion(Duration slack) : slack_(slack) {}

  std::string_view name() const override { return "completion"; }
  EventKinds watched() const override {
    return {EventKind::api_call, EventKind::call_served, EventKind::call_completed};
  }

  void on_event(const Observation& seen, Findings& findings) override {
    if (seen.event.kind == EventKind::api_call) made(seen, findings);
    if (seen.event.kind == EventKind::call_served && seen.event.number == kTimedOut)
      answered_so_.insert(seen.event.id);
    if (seen.event.kind == EventKind::call_completed) completed(seen, findings);
  }

  void at_end(const ClusterView& cluster, Findings& findings) override {
    // In the order in which the calls were made.
    for (const CausalId& id : order_) {
      const Call& call = calls_.at(id);
      if (call.completed || !call.awaited) continue;
      for (const LifeView& life : cluster.lives) {
        if (life.id == call.life && ended_well(life))
          findings.fail(name(), describe(id, call),
                        "it never completed, and its worker's main has ended");
      }
    }
  }

 private:
  struct Call {
    net_fake::LifeId life;
    std::string function;
    Instant made{};
    Instant deadline = Instant::max();  // in virtual time
    Instant due = Instant::max();       // the same by the clock of its worker
    Duration busy_time{};               // of its worker's machine, when it was made
    bool awaited = true;
    bool completed = false;
  };

  static std::string describe(const CausalId& id, const Call& call) {
    return "call " + to_string(id) + " of " + call.function;
  }

  void made(const Observation& seen, Findings& findings) {
    const Event& event = seen.event;
    const auto [place, fresh] = calls_.try_emplace(event.id);
    Call& call = place->second;
    if (!fresh) findings.fail(name(), describe(event.id, call), "it was made twice");
    call.life = seen.life;
    call.function = event.text;
    call.awaited = event.digest != static_cast<uint64_t>(CallForm::remote);
    call.busy_time = seen.busy_time;
    call.made = seen.when;
    if (event.number > 0) {
      const Duration time_left(static_cast<int64_t>(event.number));
      call.deadline = saturated(seen.when, time_left);
      call.due = saturated(seen.shown, time_left);
    }
    if (!call.awaited) {
      Instant& first = first_creation_due_.try_emplace(seen.life, Instant::max()).first->second;
      first = std::min(first, call.due);
    }
    order_.push_back(event.id);
  }

  void completed(const Observation& seen, Findings& findings) {
    const auto found = calls_.find(seen.event.id);
    if (found == calls_.end())
      return findings.fail(name(), "call " + to_string(seen.event.id),
                           "it completed without having been made");
    Call& call = found->second;
    if (call.completed) findings.fail(name(), describe(seen.event.id, call), "it completed twice");
    // An event that a machine kept while it was busy may be held back once more.
    const Duration slack = seen.busy_time.count() > 0 ? 2 * slack_ : slack_;
    // A clock that runs slow shows its time later than it is, and one that jumps earlier.
    const Duration late = std::min(seen.when - call.deadline, seen.shown - call.due);
    // Once all agree that a backward pass is complete, its time may pass: it ends well, or with the
    // loss of a worker.
    const bool may_be_late = call.function == "backward" && seen.event.number != kTimedOut;
    if (!may_be_late && late > slack + seen.busy_time - call.busy_time)
      findings.fail(name(), describe(seen.event.id, call),
                    "it completed " + std::to_string(late / std::chrono::milliseconds(1)) +
                        " ms after its time-out");
    if (seen.event.number == kTimedOut && is_too_early(seen, call))
      findings.fail(name(), describe(seen.event.id, call),
                    "its time-out came before its time, and its callee has not answered so");
    call.completed = true;
  }

  // One that fails as it is made has a reference or a context that had failed so before; and one
  // that uses a reference fails with its creation.
  bool is_too_early(const Observation& seen, const Call& call) const {
    if (seen.when == call.made || seen.shown >= call.due) return false;
    if (answered_so_.contains(seen.event.id)) return false;
    const auto creation = first_creation_due_.find(seen.life);
    return creation == first_creation_due_.end() || seen.shown < creation->second;
  }

  const Duration slack_;
  std::unordered_map<CausalId, Call, CausalIdHash> calls_;
  std::vector<CausalId> order_;
  std::unordered_set<CausalId, CausalIdHash> answered_so_;  // by a time-out
  // When the first call of a life that only creates a reference is given up, by its clock.
  std::map<net_fake::LifeId, Instant> first_creation_due_;
};

}  // namespace

std::unique_ptr<Oracle> make_completion(Duration slack) {
  return std::make_unique<Completion>(slack);
}

}  // namespace rehearsal::sim
