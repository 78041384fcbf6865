#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/base/trace.h"

namespace rehearsal::sim {

inline constexpr uint32_t kNoWorker = UINT32_MAX;

// The subject of an entry of a history. Beside the events of nodes, it is what the network and the
// cluster do.
enum class EntryKind : uint8_t {
  event,      // of a node: `event` says which
  sent,       // a frame with a message begins to travel; number: its sequence, attempt
  arrived,    // it is handed to `worker`, which `peer` sent it to; the next entry of that worker is
              // what comes of it
  broken,     // the connection of worker and peer breaks; text: why
  partition,  // text: who is cut off from whom
  healed,     // a partition has ended
  decision,   // a given decision was asked for; text: KEY=VALUE
  crash,      // of worker
  restart,    // of worker: `life` begins
  calm,       // the storm is over
  tables,     // what worker holds after its last event; text: "pending calls 1, owners 2"
  failed,     // an oracle has just found something; text: which oracle
};
inline constexpr size_t kEntryKinds = static_cast<size_t>(EntryKind::failed) + 1;

// One thing that happened in a run. A field that does not apply is left as it is here.
struct Entry {
  EntryKind kind = EntryKind::event;
  EventKind event{};
  Instant when{};
  uint32_t worker = kNoWorker;
  uint32_t life = 0;
  uint32_t peer = kNoWorker;
  uint32_t peer_life = 0;
  std::string id;             // causal, as people read it; empty: none
  uint32_t message_type = 0;  // 0: none
  uint64_t number = 0;
  uint64_t attempt = 0;
  uint64_t bytes = 0;  // of the frame
  std::string text;
  std::string detail;  // what a message says: function, tensors, …

  bool operator==(const Entry&) const = default;
};

// Takes the history of a run while it goes on.
class HistorySink {
 public:
  virtual ~HistorySink() = default;
  // Before all entries: the names of the workers, by rank.
  virtual void begin(const std::vector<std::string>& workers) = 0;
  virtual void add(Entry entry) = 0;
};

// The history of a run, whole. Give one to ClusterOptions::history; it outlives the cluster.
class History final : public HistorySink {
 public:
  void begin(const std::vector<std::string>& workers) override { workers_ = workers; }
  void add(Entry entry) override { entries_.push_back(std::move(entry)); }

  [[nodiscard]] const std::vector<std::string>& workers() const { return workers_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<std::string> workers_;
  std::vector<Entry> entries_;
};

}  // namespace rehearsal::sim
