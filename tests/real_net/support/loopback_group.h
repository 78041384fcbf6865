#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/api/program.h"
#include "real_net/worker/real_node.h"
#include "tests/real_net/support/fault_proxy.h"

namespace rehearsal::real {

struct GroupOptions {
  uint32_t worker_threads = 2;
  bool through_proxies = false;
  NodeOptions node;  // timeouts; the rest is filled in
  uint64_t lend_from = kLendFrom;
  std::string record_folder;  // for NAME.record of each worker; empty: nothing is recorded
  uint64_t record_bytes = uint64_t{16} << 20;
  std::vector<Trace*> traces;                // of the workers, in rank order; empty: none
  std::optional<Address> metrics;            // where each answers with its metrics; port 0
  std::string checkpoints;                   // the folder of all workers' checkpoints; empty: none
  std::function<void(NodeOptions&)> adjust;  // of one worker, when the rest is filled in
};

// All workers of a program as nodes of this process, on loopback; each runs on a thread of its own.
class LoopbackGroup {
 public:
  static constexpr Seed kSeed{7};

  LoopbackGroup(const Program& program, const GroupOptions& options) {
    const std::vector<std::string> names = program.names();
    for (uint32_t rank = 0; rank < names.size(); ++rank) {
      RealNodeOptions made;
      made.node = options.node;
      made.lend_from = options.lend_from;
      made.node.id = {rank};
      made.node.incarnation = incarnation_of({rank}, 1000);
      made.node.seed = kSeed;
      made.node.names = names;
      if (options.adjust) options.adjust(made.node);
      made.runtime.worker_threads = options.worker_threads;
      made.transport.back_off = {.min = std::chrono::milliseconds(2),
                                 .max = std::chrono::milliseconds(50)};
      made.metrics = options.metrics;
      made.checkpoints = options.checkpoints;
      if (!options.traces.empty()) made.trace = options.traces[rank];
      if (!options.record_folder.empty())
        made.record =
            record::RecordOptions{.file = options.record_folder + "/" + names[rank] + ".record",
                                  .ring_bytes = options.record_bytes};
      if (options.through_proxies) {
        proxies_.push_back(std::make_unique<FaultProxy>());
        made.transport.advertise = Address{.host = "127.0.0.1", .port = proxies_.back()->port()};
      }
      nodes_.push_back(std::make_unique<RealNode>(made, program));
      if (options.through_proxies) proxies_.back()->set_target(nodes_.back()->address().port);
    }
    for (uint32_t from = 0; from < nodes_.size(); ++from)
      for (uint32_t to = 0; to < nodes_.size(); ++to)
        if (from != to) nodes_[from]->set_address({to}, nodes_[to]->reached_at());
  }

  // How each worker ended, in rank order.
  std::vector<Status> run() {
    std::vector<std::optional<Status>> ends(nodes_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < nodes_.size(); ++rank)
      threads.emplace_back([this, rank, &ends] { ends[rank] = nodes_[rank]->run(); });
    for (std::thread& thread : threads) thread.join();
    std::vector<Status> all;
    for (auto& end : ends) all.push_back(std::move(*end));
    return all;
  }

  [[nodiscard]] RealNode& node(uint32_t rank) { return *nodes_[rank]; }
  // On the way to that worker.
  [[nodiscard]] FaultProxy& proxy(uint32_t rank) { return *proxies_[rank]; }

 private:
  std::vector<std::unique_ptr<RealNode>> nodes_;
  std::vector<std::unique_ptr<FaultProxy>> proxies_;
};

}  // namespace rehearsal::real
