#include "tests/bench/loopback_nodes.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <thread>

namespace rehearsal::bench {

LoopbackNodes::LoopbackNodes(const Program& program, const Options& options) {
  at::set_num_threads(1);
  const std::vector<std::string> names = program.names();
  for (uint32_t rank = 0; rank < names.size(); ++rank) {
    real::RealNodeOptions made;
    made.node.id = {rank};
    made.node.incarnation = incarnation_of({rank}, 1000);
    made.node.names = names;
    made.runtime.worker_threads = options.worker_threads;
    made.checkpoints = options.checkpoints;
    nodes_.push_back(std::make_unique<real::RealNode>(made, program));
  }
  for (uint32_t from = 0; from < nodes_.size(); ++from)
    for (uint32_t to = 0; to < nodes_.size(); ++to)
      if (from != to) nodes_[from]->set_address({to}, nodes_[to]->reached_at());
}

Status LoopbackNodes::run() {
  std::vector<std::thread> threads;
  for (size_t rank = 1; rank < nodes_.size(); ++rank)
    threads.emplace_back([this, rank] { (void)nodes_[rank]->run(); });
  Status end = nodes_.front()->run();
  for (std::thread& thread : threads) thread.join();
  return end;
}

NodeCounts::NodeCounts(real::RealNode& node)
    : reads(static_cast<double>(node.transport().census().reads)),
      writes(static_cast<double>(node.transport().census().writes)),
      polls(static_cast<double>(node.runtime().poller().wait_count())),
      wakes(static_cast<double>(node.runtime().polling_counts().wakes)) {}

NodeCounts NodeCounts::since(const NodeCounts& before) const {
  NodeCounts counts = *this;
  counts.reads -= before.reads;
  counts.writes -= before.writes;
  counts.polls -= before.polls;
  counts.wakes -= before.wakes;
  return counts;
}

void NodeCounts::add(const NodeCounts& more) {
  reads += more.reads;
  writes += more.writes;
  polls += more.polls;
  wakes += more.wakes;
}

void NodeCounts::report(benchmark::State& state, const std::string& prefix, double parts) const {
  const double all = static_cast<double>(state.iterations()) * parts;
  state.counters[prefix + "reads"] = reads / all;
  state.counters[prefix + "writes"] = writes / all;
  state.counters[prefix + "polls"] = polls / all;
  state.counters[prefix + "wakes"] = wakes / all;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.at(values.size() / 2);
}

}  // namespace rehearsal::bench
