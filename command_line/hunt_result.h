// The result of a hunt, or of all shards of one: printed, written as JSON, read back, and merged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command_line/commands.h"
#include "command_line/coverage_text.h"
#include "command_line/junit.h"

namespace rehearsal::command_line {

// The runs and decisions that one strategy has been given.
struct Spent {
  uint64_t runs = 0;
  uint64_t decisions = 0;  // events of workers
};

// The first run that failed, in the order of seeds, and what was made of it.
struct HuntFailure {
  std::string scenario;
  uint64_t seed = 0;
  std::string crash_at;     // WORKER:N, of a crash sweep; empty: none
  sim::RunFailure failure;  // of the run that `replay` repeats
  std::string replay;
  std::string as_found;         // the command of the run before it was made small
  Json others = Json::array();  // what else failed while it was made small
};

// The part of a hunt's time that one of its scenarios was given, where they share it.
struct HuntShare {
  std::string way;  // "storm --faults hostile": the scenario, and what it was searched with
  uint64_t runs = 0;
  double new_in_a_run = 0;  // features that are to be expected of one more run
};

// Which hunt this is. Results are merged only if all of it is equal, but for the shard.
struct HuntIdentity {
  std::vector<std::string> scenarios;
  std::vector<std::string> arguments;  // those of `run` for each scenario, without a seed
  uint64_t first_seed = 1;
  std::optional<uint64_t> seed_count;  // without: the hunt had a limit of time
  bool crash_sweep = false;
  bool coverage = false;  // it tells which pairs came up
  uint64_t shard = 0;
  uint64_t shard_count = 1;
};

struct HuntResult {
  HuntIdentity identity;
  std::map<std::string, uint64_t> runs;  // by scenario
  std::map<std::string, Spent> spent;    // by strategy
  CoverageCounts coverage = {};          // if it was asked for
  std::vector<HuntShare> shares = {};    // none of a hunt whose number of seeds was given
  double wall_seconds = 0;               // of the shard that took longest
  double shard_seconds = 0;              // of all shards together
  std::optional<HuntFailure> failure;

  [[nodiscard]] uint64_t run_count() const;
};

[[nodiscard]] HuntIdentity identity_of(const HuntCommand& command);

[[nodiscard]] Json to_json(const HuntResult& result);

// The result of the whole hunt from the outputs of `hunt --json` of all its shards. It says the
// same as the hunt without shards: its runs, what each strategy was given, and the failure with the
// smallest seed. Throws WrongUse, with the name of a file, if one is no such output, is of another
// hunt, comes twice or is missing.
[[nodiscard]] HuntResult merge_results(const std::vector<std::string>& files);

// For people, or as JSON; a failure ends with the command that repeats it. Returns the exit status.
int print_result(const Tool& tool, const HuntResult& result);

// A test case for each scenario.
[[nodiscard]] std::vector<JunitCase> junit_cases(const HuntResult& result);

}  // namespace rehearsal::command_line
