// The outcome of a run, and its two faces: the JSON object and the lines for people.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command_line/run_settings.h"
#include "sim/run_failure.h"

namespace rehearsal::command_line {

struct RunOutcome {
  bool ok = false;
  std::optional<std::string> fingerprint;  // of a simulated run
  std::optional<double> virtual_seconds;   // the same
  int64_t calls = 0;
  int64_t messages = 0;
  uint64_t stacks_left = 0;  // that could not be unwound, and are as a crash left them
  int torch_threads = 0;     // that LibTorch calculated with, the most of any worker
  std::string faults;        // of a simulated run: all that its seed drew
  // Of a simulated run, by worker: how many of its events a crash could come before.
  std::map<std::string, uint64_t> decisions;
  // Of a simulated run: what was chosen, if it was recorded, the order of a strategy also as
  // deviations from the order of instants; and the keys of given decisions that did not come up.
  std::vector<sim::Override> choices;
  std::vector<std::string> absent;
  std::vector<std::string> leaks;  // of a simulated run: references that were left, a line each
  // Of a simulated run, for later ones: its strategy with what it has learnt, if anything; how
  // often the strategy chose and how many decisions there were in all; and if they were asked for,
  // how many events each choice of the strategy was of, and what the run has shown
  // (sim/hunt/features.h), and which pairs came up (sim/world/coverage.h).
  std::string strategy;
  uint64_t steps = 0;
  uint64_t draws = 0;
  std::vector<uint8_t> widths;
  std::vector<uint32_t> features;
  std::vector<uint32_t> coverage;
  Results results;
  std::optional<sim::RunFailure> failure;  // if not ok
  // Why a file that the run wrote as it went, a trace or a history, ends too early:
  // "FILE: cannot be written: CAUSE". Empty: none does.
  std::string unwritten;
};

// Between processes: everything in the struct.
[[nodiscard]] Json to_json(const RunOutcome& outcome);
[[nodiscard]] RunOutcome outcome_from_json(const Json& json);

[[nodiscard]] Json to_json(const sim::RunFailure& failure, const std::string& replay);

// The oracle of a run that had to be ended because the time of its search was up.
inline constexpr const char* kUnfinished = "unfinished";

// The run ended its process, or had to be ended with it.
[[nodiscard]] bool ends_process(const sim::RunFailure& failure);

// The text by which two runs are compared: without the stack of one that ended its process, since
// where that was interrupted is a matter of time.
[[nodiscard]] std::string text_to_compare(const sim::RunFailure& failure);

// The JSON that `run --json` prints.
[[nodiscard]] Json report_json(const RunSettings& settings, const RunOutcome& outcome,
                               double wall_seconds, const std::string& replay);

// The same for people, some lines, each with its end. Without the replay command.
[[nodiscard]] std::string report_text(const RunSettings& settings, const RunOutcome& outcome,
                                      double wall_seconds);

// An earlier `run --json` output that this run is compared with.
struct Comparison {
  std::string file;
  std::map<std::string, TensorDigest> tensors;
};

// Throws WrongUse if the file is not such an output.
[[nodiscard]] Comparison read_comparison(const std::string& file);

// A sentence that names the first tensor, in the order of names, that differs; nothing if none
// does.
[[nodiscard]] std::optional<std::string> first_difference(const Comparison& comparison,
                                                          const Results& results);

}  // namespace rehearsal::command_line
