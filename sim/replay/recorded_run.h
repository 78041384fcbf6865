#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "record/record_file.h"
#include "sim/oracle.h"

namespace rehearsal::sim {

// One life of a worker that ran over TCP and was recorded.
struct RecordedLife {
  std::string name;  // of its file, for people
  std::shared_ptr<const record::Record> record;
};

struct RecordedRunOptions {
  bool strict_leaks = true;  // as ClusterOptions::strict_leaks
};

struct RecordedRunReport {
  uint64_t lives = 0;
  uint64_t events = 0;
  // Workers of which others have met a life that has no record: "worker 'a'". Nothing in which one
  // of them took part is judged.
  std::vector<std::string> unrecorded;
  std::optional<Findings::Finding> finding;
};

// Judges a run over TCP as a simulated one is judged, from the records of its workers. Each life is
// replayed, which must do what the record says; the events of all are put into one order in which a
// frame is handled after it was sent (Lamport, CACM 1978); the oracles see them in that order.
// Those that need to look into living nodes, or at a calm, see nothing here: progress, fencing.
//
// A life whose record stops counts as crashed. Time is each life's own: a machine that stood still
// is told by the silence of all that it does, so that a time-out which came later than that
// explains is found. REQUIRES: no record is refused (replay.h); all are of one run of the program.
// `fresh_program` makes it for one life, as that life's process did.
[[nodiscard]] RecordedRunReport judge(const std::vector<RecordedLife>& lives,
                                      const std::function<Program()>& fresh_program,
                                      const RecordedRunOptions& options = {});

}  // namespace rehearsal::sim
