#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/time.h"
#include "sim/cluster_options.h"
#include "sim/hunt/chosen_run.h"
#include "sim/hunt/environment.h"
#include "sim/hunt/span_taker.h"
#include "sim/run_report.h"

namespace rehearsal::sim {

// How a test hunts. With neither `seeds` nor `time` it tries 200 seeds; with both it ends with the
// first that is reached. At least one seed is tried; a hunt in whose time not one run ends fails.
struct HuntOptions {
  std::optional<uint64_t> seeds;
  std::optional<Duration> time;  // wall time, without shrinking
  // The run that is under way when `time` is up may go on for so long; then it is given up. The
  // watchdog needs about so long to tell of one that hangs.
  Duration overtime = std::chrono::seconds(15);
  std::optional<Seed> first_seed;  // else from REHEARSAL_COMMIT, else 1
  // For all seeds; else each has its portfolio_strategy. A strategy that learns from other runs
  // learns here as well: PCT the number of choices, URW and SURW how many events each chain has.
  std::optional<StrategySettings> strategy;
  ClusterOptions cluster;                           // what every run is given beside it
  Duration shrink_time = std::chrono::seconds(60);  // at most, for a failure; zero: not shrunk
  std::string report_folder;                        // else REHEARSAL_REPORT; empty: none
};

// Runs once; nothing if it holds. The failure's message is what people are told. `report` gets what
// the cluster reports.
using Trial = std::function<std::optional<RunFailure>(Seed, const ClusterOptions&)>;

// The part that all runs of a hunt share. `command_of` gives the line that repeats a run.
struct HuntTask {
  const HuntOptions& options;
  const Environment& environment;
  std::string name;  // of the test: its folder in the report
  std::function<std::string(const ChosenRun&)> command_of;
  Trial trial;
  bool needs_cluster = false;  // a run that holds without one is no search at all
  SpanTaker* spans = nullptr;  // for the report; null: it has none
};

// The search itself, without GoogleTest: see sim/gtest.h for its use in a test.
struct Hunted {
  uint64_t seeds = 0;                 // tried
  bool without_cluster = false;       // the last of them made none with its options
  std::optional<RunFailure> failure;  // of `run`
  ChosenRun run;                      // that failed, as small as it could be made
  Seed found_with{};                  // the seed before it was made small
  size_t choices = 0;                 // that the run as it was found had
  size_t shrink_runs = 0;
  Duration shrink_time{};
  std::string report;  // the folder of this failure; empty: none
  bool report_written = false;
};

// Ends at the first seed that fails, and at one that makes no cluster where one is needed.
// Deterministic but for the limits of time.
[[nodiscard]] Hunted hunt_seeds(const HuntTask& task);

// For people: what failed, how it was found and made small; alone on the last line, the command.
[[nodiscard]] std::string describe(const Hunted& hunted, const std::string& command);

}  // namespace rehearsal::sim
