#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/peer_limits.h"
#include "core/base/trace.h"
#include "observe/histogram.h"

namespace rehearsal::observe {

// Calls of one function between this worker and one peer; the worker itself may be that peer.
struct CallCounts {
  uint64_t begun = 0;                    // made here, or started here for the peer
  uint64_t ended = 0;                    // completed here, or answered here; by value or error
  std::map<ErrorKind, uint64_t> errors;  // of the ended
  std::map<CallForm, uint64_t> by_form;  // of the begun; of calls made here only
  bool operator==(const CallCounts&) const = default;
};

// The times of one function, whoever called it.
struct FunctionTimes {
  Histogram total;    // made here: until completed; served here: from its arrival to its answer
  Histogram waiting;  // served here: from its arrival until it started
  bool operator==(const FunctionTimes&) const = default;
};

// The traffic with one peer. Bytes are those of messages: envelopes and tensors.
struct PeerCounts {
  uint64_t messages_sent = 0;  // once each, however often they were resent
  uint64_t bytes_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_received = 0;
  uint64_t messages_resent = 0;
  uint64_t bytes_resent = 0;
  uint64_t frames_dropped = 0;  // duplicates, and those of another incarnation or a lost peer
  uint64_t links_up = 0;        // how often a link to it came up
  uint64_t links_lost = 0;
  uint64_t fenced = 0;  // how often it was given up for good
  bool operator==(const PeerCounts&) const = default;
};

// How a worker's threads have waited; see RealRuntime::PollingCounts.
struct PollingCounts {
  uint64_t looks = 0;
  uint64_t yields = 0;
  uint64_t sleeps = 0;
  uint64_t wakes = 0;
  bool operator==(const PollingCounts&) const = default;
};

// All that was counted, by value: what is shown, kept or compared.
struct MetricsSnapshot {
  using Functions = std::map<std::string, std::map<uint32_t, CallCounts>>;  // by name, then peer
  using Times = std::map<std::string, FunctionTimes>;                       // by name

  std::string worker;
  std::vector<std::string> names;  // of all workers, in rank order
  Functions made, served;
  Times made_times, served_times;
  std::map<uint32_t, PeerCounts> peers;
  std::map<std::string, std::string> notes;  // the latest number of each, as its text
  uint64_t unanswered = 0;                   // calls made here that wait for their answer
  uint64_t waiting = 0;                      // calls that arrived and have not started
  uint64_t running = 0;                      // calls that have started and are not answered
  Duration oldest_waiting{};                 // how long the oldest of the waiting has waited
  uint64_t contexts = 0;                     // autograd contexts that are here
  uint64_t passes = 0;                       // backward passes that this worker is in
  uint64_t passes_begun = 0;                 // in which it has taken part
  uint64_t passes_failed = 0;                // of these
  // Send functions that the contexts hold. No event tells of them: whoever has the node fills it
  // in.
  std::optional<uint64_t> send_functions;
  std::optional<PeerPeaks> peaks;        // the same
  std::optional<PollingCounts> polling;  // the same; of a real worker
};

// Counts what one worker does, and how long it takes. A call that this worker serves is waiting
// from its arrival until its function starts: for its turn, for the references in its arguments to
// be confirmed, for the value that it is a method of. One that is refused is ended and never begun,
// and has no function: it counts under the empty name. A fetch (`to_here`) is never begun either:
// it waits until it is answered, and counts under the name `fetch`.
//
// Of what the worker's code notes, the latest number under each name is kept, for the first
// kNotesMax names. Backward passes count at every worker that takes part in them.
//
// It belongs to the strand of the node that it hears, as every Trace. In the simulator it hears
// all workers and counts one of them; what a crash cuts off stays waiting.
class Metrics final : public Trace {
 public:
  static constexpr size_t kNotesMax = 1000;

  // `names`: of all workers, in rank order.
  Metrics(std::vector<std::string> names, WorkerId self);

  void on_event(const Event& event) override;

  // `now`: on the worker's time line, as Event::when is.
  [[nodiscard]] MetricsSnapshot snapshot(Instant now) const;

 private:
  struct Made {
    Instant when;
    std::string function;
  };
  struct Arrived {
    Instant when;
    bool started = false;
  };
  // Which messages to a peer have left: what is sent while there is no link leaves with those that
  // are resent, for the first time. By their numbers, which begin anew with each of its lives.
  struct Sent {
    bool link_lost = false;
    uint64_t latest = 0;  // that was sent
    uint64_t left = 0;    // the last that had left when a link was lost
  };

  void on_traffic(const Event& event);
  void on_made(const Event& event);
  void on_completed(const Event& event);
  void on_started(const Event& event);
  void on_served(const Event& event);
  void on_note(const Event& event);
  void on_autograd(const Event& event);

  MetricsSnapshot counts_;
  const WorkerId self_;
  std::map<uint32_t, Sent> sent_;                                // by peer
  std::unordered_map<CausalId, Made, CausalIdHash> made_;        // look-up only
  std::unordered_map<CausalId, Arrived, CausalIdHash> arrived_;  // the same
};

}  // namespace rehearsal::observe
