#pragma once

#include <cstdint>
#include <optional>
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
  decision,   // a given decision was asked for; text: KEY=VALUE, detail: in words
  crash,      // of worker
  restart,    // of worker: `life` begins
  calm,       // the storm is over
  tables,     // what worker holds after its last event; text: "pending calls 1, owners 2"
  failed,     // an oracle has found something; text: which oracle; number: 0 in what has just
              // happened, 1 in how things are. With a worker: its main has failed, earlier
  device,     // something happens at a simulated device of worker; stream: where, and what;
              // number: of the operation; text: its name
  thrown,     // by code of worker; id, detail: of which execution; text: what; number: 1 if it came
              // from a call, and is thrown once more
};
inline constexpr size_t kEntryKinds = static_cast<size_t>(EntryKind::thrown) + 1;

// The part in autograd of a message, or of the beginning or end of a backward pass. Messages that a
// worker sends itself have none: they do not travel.
struct AutogradNote {
  std::string context;
  uint64_t epoch = 0;            // of the backward pass; zero: it belongs to none
  uint32_t starter = kNoWorker;  // of the pass
  bool fast = false;             // the pass expects a gradient for every send function
  std::string carried;           // the autograd message that it carries; empty: none
  std::vector<std::string>
      about;         // the autograd messages whose gradients it brings, answers, marks
  std::string wave;  // check, resume or commit

  bool operator==(const AutogradNote&) const = default;
};

// A step of a stream of a simulated device.
struct StreamNote {
  enum class Step : uint8_t { given, done, went_on, awaited };  // as in sim/device/machine.h
  Step step = Step::given;
  uint32_t device = 0;
  uint64_t stream = 0;

  bool operator==(const StreamNote&) const = default;
};

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
  std::string detail;  // what a message says: function, values, …; the value of a note
  std::string stack;   // where in the program's source a call was made or something thrown: lines
                       // of sim/places/source_places.h
  std::string parent;  // of a call that was made: the id of the execution that made it
  std::optional<AutogradNote> autograd = {};
  std::optional<StreamNote> stream = {};

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
