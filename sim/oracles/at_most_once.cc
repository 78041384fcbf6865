#include <unordered_map>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

class AtMostOnce final : public QuietOracle {
 public:
  std::string_view name() const override { return "at-most-once"; }

  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    if (event.kind == EventKind::api_call && event.text == "to_here") calls_[event.id].fetch = true;
    if (event.kind == EventKind::call_executed) {
      Call& call = calls_[event.id];
      if (++call.executed == 2)
        findings.fail(name(), "call " + to_string(event.id) + " of " + std::string(event.text),
                      "its function has run twice, the second time at worker " +
                          std::to_string(seen.life.worker.value));
    }
    if (event.kind == EventKind::call_completed && event.number == 0) {
      const Call& call = calls_[event.id];
      if (call.executed == 0 && !call.fetch)
        findings.fail(name(), "call " + to_string(event.id),
                      "its caller has a value, but its function never ran");
    }
  }

 private:
  struct Call {
    uint32_t executed = 0;
    bool fetch = false;  // of a value: no function runs
  };
  std::unordered_map<CausalId, Call, CausalIdHash> calls_;
};

}  // namespace

std::unique_ptr<Oracle> make_at_most_once() { return std::make_unique<AtMostOnce>(); }

}  // namespace rehearsal::sim
