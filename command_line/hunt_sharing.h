#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "command_line/lagging.h"
#include "command_line/outcome.h"

namespace rehearsal::command_line {

// Shares the time of a hunt among its ways (scenarios, each with some faults) by what is still
// being discovered. A quarter goes to all alike; the rest in proportion to the new features
// (sim/hunt/features.h) that are to be expected for the events that a way is given: of a
// scenario's features those that one run alone has shown, this way's, over all events that the way
// was given (I. J. Good, The Population Frequencies of Species, 1953: the chance that the next one
// is new is the share of those that were seen once). Which way a run is given is a function of the
// hunt's arguments; see Lagging.
class HuntSharing {
 public:
  // The name of the scenario of each way; at least one.
  explicit HuntSharing(const std::vector<std::string>& scenarios);

  struct Turn {
    size_t way = 0;
    uint64_t nth = 0;  // of the runs of this way, from 0
  };
  [[nodiscard]] bool ready_for(size_t task) const { return results_.ready_for(task); }
  // Of the next run. Runs are asked for in their order. REQUIRES: ready_for(task).
  [[nodiscard]] Turn next(size_t task);
  void learn(size_t task, const RunOutcome& outcome);

  struct Row {
    uint64_t runs = 0;
    double new_in_a_run = 0;  // features that are to be expected of one more run
  };
  // Of each way, as far as it was learnt.
  [[nodiscard]] std::vector<Row> rows() const;

 private:
  struct Way {
    size_t scenario = 0;
    uint64_t given = 0;
    uint64_t done = 0;
    uint64_t cost = 0;     // of those that are done
    uint64_t singles = 0;  // features that one of its runs has shown, and no other run
    double position = 0;   // what it was charged: the one with the least is next
  };
  struct Result {
    size_t way = 0;
    uint64_t cost = 0;
    std::vector<uint32_t> features;
  };
  // By whom a feature was seen first, and whether once only.
  struct Sighting {
    size_t way = 0;
    bool is_single = true;
  };
  void take(const Result& result);
  [[nodiscard]] std::vector<double> shares() const;

  std::vector<Way> ways_;
  std::vector<std::map<uint32_t, Sighting>> seen_;  // of each scenario
  std::map<size_t, size_t> way_of_;                 // of runs that are under way
  Lagging<Result> results_;
};

}  // namespace rehearsal::command_line
