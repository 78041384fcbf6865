#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/ids.h"
#include "sim/hunt/chosen_run.h"

namespace rehearsal::sim {

// The wishes of a CI job for the hunts of a test, without its being built again.
//
//   REHEARSAL_RUN      one run and no other: flags as ChosenRun writes them, or @FILE with them
//   REHEARSAL_COMMIT   the id of a commit; seeds begin at a number that follows from it
//   REHEARSAL_SEEDS    how many seeds each hunt tries at most, whatever the test says
//   REHEARSAL_SECONDS  how long each hunt may search, whatever the test says
//   REHEARSAL_SHARD    I/N: every N-th seed, from the I-th, counted from 0
//   REHEARSAL_REPORT   a folder for what failures leave
struct Environment {
  std::optional<ChosenRun> run;
  std::optional<Seed> first_seed;
  std::optional<uint64_t> seeds;
  std::optional<uint64_t> seconds;
  uint64_t shard = 0;
  uint64_t shard_count = 1;
  std::string report_folder;
};

// Throws std::invalid_argument with one line that names the variable and says what to give.
[[nodiscard]] Environment read_environment();

// A whole number; `name` is whose value the text is. Throws std::invalid_argument.
[[nodiscard]] uint64_t parse_whole(const std::string& name, const std::string& text);

// Wall time since its making. Nothing that it measures reaches a run.
class WallTime {
 public:
  WallTime() : start_(std::chrono::steady_clock::now()) {}
  [[nodiscard]] std::chrono::nanoseconds passed() const {
    return std::chrono::steady_clock::now() - start_;
  }

 private:
  std::chrono::steady_clock::time_point start_;
};

}  // namespace rehearsal::sim
