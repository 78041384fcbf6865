#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/trace.h"

namespace rehearsal::test {

// The inputs of each worker's strand, as lines: kind, causal id without its incarnation, and the
// type of messages. Left out is what depends on when things happen and not on what the program
// does: instants, timers, drained, heartbeats, acknowledgements, and the messages by which the
// group comes together and ends, which repeat as acknowledgements come in. Thread-safe, since the
// workers of a real group have a strand each.
class StrandTrace final : public Trace {
 public:
  void on_event(const Event& event) override;

  [[nodiscard]] std::vector<std::string> lines_of(WorkerId worker) const;

 private:
  mutable std::mutex mutex_;
  std::map<WorkerId, std::vector<std::string>> lines_;
};

}  // namespace rehearsal::test
