#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/api/program.h"
#include "core/base/codec.h"
#include "core/node/node.h"
#include "net_fake/witness.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/explain/history.h"
#include "sim/oracle.h"
#include "sim/world/event_queue.h"

namespace rehearsal::sim {

// Writes the history of one run into a sink: what nodes, network and cluster tell it, with the time
// and, of messages, what they say. It only looks: the run is the same with it and without.
class HistoryRecorder final : public net_fake::Witness {
 public:
  // All three outlive it.
  HistoryRecorder(HistorySink& sink, const EventQueue& queue, const Program& program);

  void on_event(const Observation& seen);
  // "crash", "restart" or "calm".
  void on_note(std::string_view what, LifeId life);
  void on_decision(const Override& given);
  // An oracle has found something. Later findings are not written.
  void on_finding(std::string_view oracle);
  // An event of this life's worker is over, and this is what its tables hold.
  void after_step(LifeId life, const NodeCensus& census);

  void on_sent(LifeId from, LifeId to, const Frame& frame, uint64_t attempt) override;
  void on_arrived(LifeId from, LifeId to, const Frame& frame) override;
  void on_broken(LifeId one, LifeId other, std::string_view why) override;
  void on_partition(const net_fake::Partition& partition) override;
  void on_healed() override;

 private:
  void add(Entry entry);

  HistorySink& sink_;
  const EventQueue& queue_;
  const Program& program_;
  const std::vector<std::string> names_;
  const std::unique_ptr<Codec> codec_;
  bool failed_ = false;
  std::vector<std::string> tables_;  // by worker: what was last written
};

}  // namespace rehearsal::sim
