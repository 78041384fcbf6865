#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/time.h"
#include "net_fake/network.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/run_failure.h"
#include "sim/strategies/profile.h"

namespace rehearsal::sim {

struct WorkerReport {
  std::string name;
  uint32_t lives = 1;          // begun
  bool crashed = false;        // the last life
  std::optional<Error> error;  // why the last life's main failed
  uint64_t decisions = 0;      // events of this worker: where it could have crashed
};

struct RunReport {
  bool ok = false;
  std::string fingerprint;           // 32 hexadecimal digits
  std::vector<Hash128> checkpoints;  // of the fingerprint, every 1,024 events of nodes
  Duration virtual_time{};
  uint64_t calls = 0;                 // that user functions ran for
  uint64_t messages = 0;              // frames with a message that were sent, resent ones included
  uint64_t decisions = 0;             // events of all workers
  uint64_t draws = 0;                 // choices made
  std::vector<WorkerReport> workers;  // in rank order
  std::optional<RunFailure> failure;
  std::vector<std::string> leaks;  // the references that were still held at shutdowns, a line each
  std::string faults;              // what the seed drew, in one line
  uint64_t crashes = 0;
  uint64_t pauses = 0;
  uint64_t clock_jumps = 0;
  // Of crashed workers: stacks that could not unwind, and are left as they are for ever with all
  // that they own. Their destructors wait for each other, or they stood in a wait of Boost.Fiber
  // that no exception can leave.
  uint64_t stacks_left = 0;
  net_fake::NetworkStats network;
  std::vector<Override> choices;  // other than benign, as they came up; if recorded
  // The choices of the strategy: together with the choices that are not its own (of the kinds pick,
  // priority and plan) they repeat the run without the strategy; if choices were recorded.
  std::vector<Override> deviations;
  std::vector<uint8_t> widths;                // how many events each choice of the strategy was of
  std::vector<ChainCount> counts;             // events of the storm, if they were counted
  std::vector<std::string> absent_overrides;  // keys that never came up
  std::string reproduction;

  [[nodiscard]] double virtual_seconds() const {
    return static_cast<double>(virtual_time.count()) / 1e9;
  }
};

// The failed oracle, its object and what was drawn; the command that reproduces it alone on the
// last line.
[[nodiscard]] std::string describe_failure(const RunReport& report);

// Thrown by Cluster::run.
class RunFailed : public std::runtime_error {
 public:
  explicit RunFailed(const RunReport& report)
      : std::runtime_error(describe_failure(report)), report_(report) {}
  [[nodiscard]] const RunReport& report() const { return report_; }

 private:
  RunReport report_;
};

}  // namespace rehearsal::sim
