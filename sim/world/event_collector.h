#pragma once

#include <array>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <vector>

#include "core/base/trace.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/oracle.h"
#include "sim/world/event_queue.h"
#include "sim/world/fingerprint.h"
#include "sim/world/local_clock.h"

namespace rehearsal::sim {

class EventLines;
class HistoryRecorder;
class Machines;

// Where the events of all nodes meet: folds them into the fingerprint and hands them on to oracles,
// traces and the event lines.
class EventCollector {
 public:
  EventCollector(const EventQueue& queue, const KeyedDecisions& decisions)
      : queue_(queue), decisions_(decisions) {}

  // `tensors`: a hash of the bytes of the tensors that arrived at the life since its last event, or
  // zero; events say nothing of them.
  void on_event(const Event& event, LifeId life, Incarnation incarnation, uint64_t tensors = 0);

  // Something that happened to the cluster as a whole; `what` names it.
  void note(std::string_view what, LifeId life);

  void add(Trace& trace) { traces_.push_back(&trace); }
  void add(Oracle& oracle);
  void set_lines(EventLines* lines) { lines_ = lines; }
  void set_history(HistoryRecorder* history) { history_ = history; }
  // By worker; empty: every clock shows virtual time.
  void set_clocks(const std::vector<LocalClock>& clocks) { clocks_ = &clocks; }
  // Null: no machine is ever busy.
  void set_machines(const Machines* machines) { machines_ = machines; }

  [[nodiscard]] const Fingerprint& fingerprint() const { return fingerprint_; }
  [[nodiscard]] Findings& findings() { return findings_; }
  [[nodiscard]] const Findings& findings() const { return findings_; }
  [[nodiscard]] uint64_t calls() const { return calls_; }

 private:
  void fold(const Event& event, Incarnation incarnation, uint64_t tensors);
  [[nodiscard]] Instant shown_to(WorkerId worker) const;

  const EventQueue& queue_;
  const KeyedDecisions& decisions_;
  Fingerprint fingerprint_;
  Findings findings_;
  std::array<std::vector<Oracle*>, kEventKinds> watchers_;  // by kind, in the order of `add`
  std::vector<Trace*> traces_;
  EventLines* lines_ = nullptr;
  HistoryRecorder* history_ = nullptr;
  const std::vector<LocalClock>* clocks_ = nullptr;
  const Machines* machines_ = nullptr;
  uint64_t calls_ = 0;
};

}  // namespace rehearsal::sim
