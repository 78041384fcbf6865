#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/api/program.h"
#include "core/base/codec.h"
#include "core/node/node.h"
#include "net_fake/witness.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/device/machine.h"
#include "sim/explain/futile_tries.h"
#include "sim/explain/history.h"
#include "sim/explain/throw_watch.h"
#include "sim/oracle.h"
#include "sim/places/source_places.h"
#include "sim/world/event_queue.h"

namespace rehearsal::sim {

// Writes the history of one run into a sink: what nodes, network and cluster tell it, with the time
// and, of messages, what they say. It only looks: the run is the same with it and without.
class HistoryRecorder final : public net_fake::Witness, public ThrowListener {
 public:
  // Around one event of a worker: what its code throws meanwhile is its own.
  class Step {
   public:
    Step(HistoryRecorder& recorder, LifeId life) : watch_(recorder) { recorder.running_ = life; }

   private:
    ThrowWatch watch_;
  };

  // All three outlive it.
  HistoryRecorder(HistorySink& sink, const EventQueue& queue, const Program& program);

  void on_event(const Observation& seen);
  // "crash", "restart", "calm", or another word for what happens to this life.
  void on_note(std::string_view what, LifeId life);
  void on_decision(const Override& given);
  // An oracle has found something, in the event that was told last, or in how things are. Later
  // findings are not written.
  void on_finding(std::string_view oracle);
  void on_finding_afterwards(std::string_view oracle);
  // The run has failed because this life's main did, some time ago.
  void on_main_failed(LifeId life);
  // An event of this life's worker is over, and this is what its tables hold.
  void after_step(LifeId life, const NodeCensus& census);

  // A device of this life's worker has done something.
  void on_stream(LifeId life, const device::StreamStep& step);

  void on_throw(const std::type_info& type, const std::exception* thrown,
                const void* object) override;

  void on_sent(LifeId from, LifeId to, const Frame& frame, uint64_t attempt) override;
  void on_arrived(LifeId from, LifeId to, const Frame& frame) override;
  void on_broken(LifeId one, LifeId other, std::string_view why) override;
  void on_partition(const net_fake::Partition& partition) override;
  void on_healed() override;

 private:
  using Path = std::pair<uint32_t, Hash128>;  // of an execution, at its worker

  void add(Entry entry);
  void note_execution(const Event& event);
  [[nodiscard]] std::string text_of(const Message& message);

  HistorySink& sink_;
  const EventQueue& queue_;
  const Program& program_;
  const std::vector<std::string> names_;
  const std::unique_ptr<Codec> codec_;
  SourcePlaces places_;
  FutileTries tries_;
  LifeId running_{};                               // whose event is under way
  std::map<Path, std::string> executions_;         // what started each that has begun
  std::map<CausalId, const Function*> functions_;  // of each call that was sent
  bool failed_ = false;
  std::vector<std::string> tables_;  // by worker: what was last written
};

}  // namespace rehearsal::sim
