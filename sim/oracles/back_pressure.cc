#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/wire/message.h"
#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

// A call that a worker has not handled was not acknowledged either: of one life's calls to it there
// are never more than its window has room for.
class BackPressure final : public QuietOracle {
 public:
  explicit BackPressure(uint64_t window_frames) : window_frames_(window_frames) {}

  std::string_view name() const override { return "back-pressure"; }
  EventKinds watched() const override {
    return {EventKind::frame, EventKind::frame_sent, EventKind::peer_fenced};
  }

  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    if (event.peer == event.worker) return;
    if (event.kind == EventKind::frame) handled(seen);
    if (event.kind == EventKind::peer_fenced) queues_.erase({event.worker, event.peer});
    if (event.kind == EventKind::frame_sent && event.message_type == call_type_)
      sent(seen, findings);
  }

 private:
  // The calls of one life to one worker that are on their way.
  struct Queue {
    uint32_t life = 0;
    std::set<uint64_t> sequences;
  };

  void sent(const Observation& seen, Findings& findings) {
    const Event& event = seen.event;
    Queue& queue = queues_[{event.worker, event.peer}];
    if (queue.life != seen.life.life) queue = {seen.life.life, {}};
    queue.sequences.insert(event.number);
    if (queue.sequences.size() <= window_frames_) return;
    findings.fail(name(), "worker " + std::to_string(event.worker.value),
                  "worker " + std::to_string(event.peer.value) + " has not handled " +
                      std::to_string(queue.sequences.size()) + " of its calls, more than the " +
                      std::to_string(window_frames_) + " frames of its window");
  }

  void handled(const Observation& seen) {
    const auto queue = queues_.find({seen.event.peer, seen.event.worker});
    if (queue != queues_.end()) queue->second.sequences.erase(seen.event.number);
  }

  const uint64_t window_frames_;
  const uint32_t call_type_ = Message{Call{}}.type();
  std::map<std::pair<WorkerId, WorkerId>, Queue> queues_;  // by sender and receiver
};

}  // namespace

std::unique_ptr<Oracle> make_back_pressure(uint64_t window_frames) {
  return std::make_unique<BackPressure>(window_frames);
}

}  // namespace rehearsal::sim
