#include <string>
#include <unordered_map>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

// A deadline's timer may be late, and the strand busy.
constexpr Duration kSlack = std::chrono::seconds(1);

class Completion final : public QuietOracle {
 public:
  std::string_view name() const override { return "completion"; }
  EventKinds watched() const override { return {EventKind::api_call, EventKind::call_completed}; }

  void on_event(const Observation& seen, Findings& findings) override {
    if (seen.event.kind == EventKind::api_call) made(seen, findings);
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
    Instant deadline = Instant::max();
    Duration busy_time{};  // of its worker's machine, when it was made
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
    if (event.number > 0) call.deadline = seen.when + Duration(static_cast<int64_t>(event.number));
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
    const Duration slack = seen.busy_time.count() > 0 ? 2 * kSlack : kSlack;
    const Duration late = slack + seen.busy_time - call.busy_time;
    if (call.deadline < Instant::max() - late && seen.when > call.deadline + late)
      findings.fail(name(), describe(seen.event.id, call),
                    "it completed " +
                        std::to_string((seen.when - call.deadline) / std::chrono::milliseconds(1)) +
                        " ms after its time-out");
    call.completed = true;
  }

  std::unordered_map<CausalId, Call, CausalIdHash> calls_;
  std::vector<CausalId> order_;
};

}  // namespace

std::unique_ptr<Oracle> make_completion() { return std::make_unique<Completion>(); }

}  // namespace rehearsal::sim
