#include <map>
#include <unordered_map>

#include "core/base/interval_set.h"
#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

class AtMostOnce final : public QuietOracle {
 public:
  std::string_view name() const override { return "at-most-once"; }
  EventKinds watched() const override {
    return {EventKind::peer_up, EventKind::frame, EventKind::api_call, EventKind::call_executed,
            EventKind::call_completed};
  }

  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    if (event.kind == EventKind::peer_up) peer_up(seen);
    if (event.kind == EventKind::frame) frame(seen, findings);
    const bool is_fetch = event.text == "to_here" || event.text == "RRef.created";
    if (event.kind == EventKind::api_call && is_fetch) calls_[event.id].fetch = true;
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
    bool fetch = false;  // of a value, or whether it is there: no function runs
  };
  // The messages of one life of a peer that one life of a worker has handled.
  struct Stream {
    uint64_t incarnation = 0;
    IntervalSet handled{0};
  };

  void peer_up(const Observation& seen) {
    Stream& stream = streams_[{seen.life, seen.event.peer}];
    if (stream.incarnation != seen.event.number) stream = {seen.event.number, IntervalSet{0}};
  }

  void frame(const Observation& seen, Findings& findings) {
    const Event& event = seen.event;
    if (event.peer == event.worker) return;
    if (streams_[{seen.life, event.peer}].handled.insert(event.number)) return;
    findings.fail(name(),
                  "frame " + std::to_string(event.number) + " of worker " +
                      std::to_string(event.peer.value) + " with " + to_string(event.id),
                  "worker " + std::to_string(seen.life.worker.value) + " has handled it twice");
  }

  std::unordered_map<CausalId, Call, CausalIdHash> calls_;
  std::map<std::pair<net_fake::LifeId, WorkerId>, Stream> streams_;
};

}  // namespace

std::unique_ptr<Oracle> make_at_most_once() { return std::make_unique<AtMostOnce>(); }

}  // namespace rehearsal::sim
