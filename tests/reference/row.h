#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/effort.h"
#include "tests/real_net/support/loopback_group.h"
#include "tests/reference/row_devices.h"

// The setting in which a row of the reference's tests runs: see README.md.
namespace rehearsal::reference {

struct RowOptions {
  // Of simulated clusters: with mild faults, or, where there are devices, with hostile ones.
  uint64_t seeds = tries(25);
  int devices = 0;                                         // simulated ones, in both worlds
  bool strict_leaks = true;                                // in both worlds
  std::function<void(NodeOptions&)> adjust_node = {};      // in both worlds
  std::function<void(sim::Cluster&)> adjust_cluster = {};  // before it runs
};

// A link whose connections break at each message, and whose next ones hang, can take minutes.
inline constexpr Duration kHostileTimeout = std::chrono::hours(1);

// On `seeds` simulated clusters with faults. Expectations may stand in the mains. A program
// whose mains share something is made anew for each run.
using MakeProgram = std::function<Program()>;

inline void on_simulated_clusters(const MakeProgram& make, const RowOptions& options = {}) {
  if (options.devices > 0 && on_cuda()) return;
  sim::HuntOptions hunt;
  hunt.seeds = options.seeds;
  hunt.cluster.adjust_node = [&options](NodeOptions& node) {
    if (options.devices > 0) node.rpc_timeout = kHostileTimeout;
    if (options.adjust_node) options.adjust_node(node);
  };
  hunt.cluster.strict_leaks = options.strict_leaks;
  hunt.cluster.devices = options.devices;
  if (options.devices > 0) hunt.cluster.faults = sim::FaultLevel::hostile;
  EXPECT_TRUE(sim::hunt(hunt, [&](Seed seed, const sim::ClusterOptions& of_seed) {
    const Program program = make();
    sim::Cluster cluster(seed, program, of_seed);
    if (options.adjust_cluster) options.adjust_cluster(cluster);
    cluster.run();
  }));
}

// Over loopback, once with two worker threads at each node, once with one and once with none. As in
// the simulator, a reference that is still held at the shutdown fails its worker, and so do waits
// for devices that are missing.
inline void over_loopback(const MakeProgram& make, const RowOptions& options = {}) {
  for (const uint32_t threads : {2, 1, 0}) {
    SCOPED_TRACE("worker threads: " + std::to_string(threads));
    real::GroupOptions group_options{.worker_threads = threads};
    // Tensors on devices go by the host, too.
    group_options.lend_from = threads == 1 ? UINT64_MAX : 1;
    group_options.node.strict_leaks = options.strict_leaks;
    std::optional<RowDevices> devices;
    if (options.devices > 0) {
      devices.emplace(options.devices);
      if (devices->lacks_some()) GTEST_SKIP() << "there are fewer than " << options.devices;
      group_options.node.devices = devices->here();
    }
    if (options.adjust_node) options.adjust_node(group_options.node);
    {
      const Program program = make();
      real::LoopbackGroup group(program, group_options);
      for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
    }
    if (devices) devices->check();
  }
}

inline void in_both_worlds(const MakeProgram& make, const RowOptions& options = {}) {
  on_simulated_clusters(make, options);
  over_loopback(make, options);
}

inline void on_simulated_clusters(const Program& program, const RowOptions& options = {}) {
  on_simulated_clusters([&] { return program; }, options);
}
inline void over_loopback(const Program& program, const RowOptions& options = {}) {
  over_loopback([&] { return program; }, options);
}
inline void in_both_worlds(const Program& program, const RowOptions& options = {}) {
  in_both_worlds([&] { return program; }, options);
}

// Four workers, worker0 … worker3, that all do the same at the same time.
inline Program everywhere(FunctionRegistry registry, const Program::Main& main,
                          uint32_t workers = 4) {
  Program program(std::move(registry));
  program.worker("worker", main, Count{workers});
  return program;
}

// One worker that calls and some that only serve: worker0 and worker1 ….
inline Program one_caller(FunctionRegistry registry, const Program::Main& main,
                          uint32_t servers = 1) {
  Program program(std::move(registry));
  program.worker("worker0", main);
  for (uint32_t rank = 1; rank <= servers; ++rank) program.worker("worker" + std::to_string(rank));
  return program;
}

// A call waits at a gate until somebody opens it: no schedule lets it through before.
class Gate {
 public:
  explicit Gate(CallContext& call) : promise_(call.promise<int64_t>()) {}
  Future<int64_t> pass() { return promise_.future(); }
  void open() { promise_.complete(1); }

 private:
  Promise<int64_t> promise_;
};

inline void register_gate(FunctionRegistry& registry) {
  registry.type<Gate>("Gate")
      .constructor<CallContext&>()
      .method("pass", &Gate::pass)
      .method("open", &Gate::open);
}

// The worker so many ranks on, in a ring.
inline std::string after(const Worker& worker, uint32_t steps = 1) {
  const auto workers = worker.workers();
  return workers[(worker.id().value + steps) % workers.size()].name;
}

// The error that `body` throws; fails the test if it throws none.
template <class F>
Error error_of(F body) {
  try {
    body();
  } catch (const RpcError& thrown) {
    return thrown.error();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

template <class F>
ErrorKind kind_of(F body) {
  return error_of(std::move(body)).kind;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace rehearsal::reference
