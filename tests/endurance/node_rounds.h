#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/api/program.h"
#include "real_net/worker/real_node.h"
#include "tests/real_net/support/fault_proxy.h"
#include "tests/temporary_folder.h"

namespace rehearsal::endurance {

// The faults that were found, if any, as lines.
using Complaints = std::vector<std::string>;

struct RoundOptions {
  Seed seed;
  uint64_t crashes_max = 2;
  std::vector<std::string> mutants;
};

// Groups of workers in this process, one after the other, each of which reaches the others through
// proxies that stay. Workers crash and come back in their next life.
class NodeRounds {
 public:
  explicit NodeRounds(size_t workers);

  // Makes the program of one life of a worker: its own, since mains of several workers share what
  // they capture.
  using MakeProgram = std::function<Program()>;

  // One group, from joining to shutdown, in bad weather. Complains about a worker that does not
  // end, ends with an error that does not name a lost worker and a cause, or leaves anything.
  [[nodiscard]] Complaints run(const MakeProgram& program, const RoundOptions& options);

  struct Counts {
    uint64_t rounds = 0;
    uint64_t crashes = 0;
    uint64_t breaks = 0;  // of connections
    uint64_t ended_well = 0;
    uint64_t ended_by_loss = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Life {
    explicit Life(const MakeProgram& make) : program(make()) {}
    Program program;  // empty once the worker is gone
    std::unique_ptr<real::RealNode> node;
    std::thread thread;
    std::optional<Status> end;  // once the thread has been joined
    std::atomic<bool> ended{false};
  };

  [[nodiscard]] std::unique_ptr<Life> start(uint32_t rank, uint32_t number,
                                            const MakeProgram& program,
                                            const RoundOptions& options);
  static void crash(Life& life, const std::string& name);
  void crash_some(std::vector<std::unique_ptr<Life>>& lives, const MakeProgram& program,
                  const RoundOptions& options, Complaints& complaints);
  void end_all(std::vector<std::unique_ptr<Life>>& lives, Complaints& complaints);
  // Also takes the node away: what it had in hand is dropped with it.
  static void look_for_leftovers(Life& life, const std::string& name, Complaints& complaints);

  std::optional<TemporaryFolder> folder_;                   // for checkpoints, of one round
  std::vector<std::unique_ptr<real::FaultProxy>> proxies_;  // on the way to each worker
  uint64_t incarnations_ = 0;
  Counts counts_;
};

// Whether this is how a worker may end that was not crashed itself.
[[nodiscard]] bool names_a_loss(const Error& error);

}  // namespace rehearsal::endurance
