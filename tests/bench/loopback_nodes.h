// All workers of a program in this process, on loopback, for benchmarks.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "real_net/worker/real_node.h"

namespace rehearsal::bench {

class LoopbackNodes {
 public:
  // Each main runs on a thread of its own, and beside it so many threads serve.
  // `checkpoints`: see RealNodeOptions.
  struct Options {
    uint32_t worker_threads = 1;
    std::string checkpoints;
  };
  LoopbackNodes(const Program& program, const Options& options);

  // The first worker's life is that of the calling thread: its end. The others end with it.
  [[nodiscard]] Status run();

  [[nodiscard]] real::RealNode& node(uint32_t rank) { return *nodes_[rank]; }

 private:
  std::vector<std::unique_ptr<real::RealNode>> nodes_;
};

// The system calls and wakes of a node.
struct NodeCounts {
  NodeCounts() = default;
  explicit NodeCounts(real::RealNode& node);  // since it was made
  [[nodiscard]] NodeCounts since(const NodeCounts& before) const;
  void add(const NodeCounts& more);
  // As counters whose names begin so, for each of so many parts of an iteration.
  void report(benchmark::State& state, const std::string& prefix, double parts = 1) const;

  double reads = 0;
  double writes = 0;
  double polls = 0;
  double wakes = 0;
};

// The middle one.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace rehearsal::bench
