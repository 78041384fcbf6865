#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/api/program.h"
#include "core/node/node.h"
#include "net_fake/network.h"
#include "sim/cluster_options.h"
#include "sim/oracle.h"
#include "sim/run_report.h"
#include "sim/values.h"

namespace rehearsal::sim {

class ClusterParts;

// A whole cluster in one process: every worker of the program, a simulated network and virtual
// time, on the calling thread. The same seed, options and program give the same run, event by
// event.
//
//   sim::Cluster cluster(Seed{42}, program);
//   cluster.network().between("ps", "trainer0").retransmit(0.05).delay(1ms, 40ms);
//   cluster.run();
//
// A run has two phases. In the storm, faults come as the seed draws them. Then all is healed, and
// in the calm everything must finish and leave nothing behind.
//
// While the cluster lives, LibTorch computes with one thread. While it runs, a clock read or a
// thread start from this program's own code ends the process; see sim/world/clock_guard.h. The
// program outlives the cluster.
class Cluster {
 public:
  Cluster(Seed seed, const Program& program, ClusterOptions options = {});
  Cluster(Seed seed, Program&& program, ClusterOptions options = {}) = delete;  // It is kept.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Links, rules, partitions; before the run or from within `at`.
  [[nodiscard]] net_fake::Network& network();

  // Another oracle for this run; before it begins.
  void add_oracle(std::unique_ptr<Oracle> oracle);

  // Something that must hold of the values that the workers' references own, after every step that
  // has run code of the program. A run in which it does not fails there and then, by an oracle of
  // this name, and so is made small and repeated as any other failure. Before the run begins.
  //
  //   cluster.add_invariant("balance", [](const Values& values) -> std::optional<std::string> {
  //     for (const auto& account : values.of<Account>("bank"))
  //       if (account->balance() < 0) return "an account is overdrawn";
  //     return std::nullopt;
  //   });
  //
  // It sees values also where a method has changed them in part and waits for something, as other
  // calls do: OwnedValue::busy says so. Of values that belong together some may not be there yet,
  // or not any more: count them first.
  void add_invariant(std::string name, Invariant broken);

  // Runs `action` when so much time has passed since the start; an event of nobody's.
  void at(Duration since_start, std::function<void()> action);

  // Runs the program to its end. Throws RunFailed, whose last line is the command that repeats the
  // run, if an oracle or a worker's main failed.
  const RunReport& run();
  // The same without throwing.
  const RunReport& try_run();

  // For tests that look inside. Each begins the run if need be; none ends it.
  //
  // Runs event by event until `holds`, looked at between events; false if `limit` has passed or
  // nothing will happen any more.
  bool run_until(const std::function<bool()>& holds, Duration limit = std::chrono::seconds(60));
  // Runs until nothing happens for `gap` but what comes later anyway: heartbeats and deadlines.
  void run_until_quiet(Duration gap = std::chrono::milliseconds(100));
  void advance(Duration time);

  // The crash and the return of a worker, now.
  void crash(std::string_view worker);
  void restart(std::string_view worker);
  // All that the worker has saved in checkpoints is gone.
  void lose_disk(std::string_view worker);

  // A worker does nothing for so long, from now on, and then goes on where it was.
  void pause(std::string_view worker, Duration time);

  [[nodiscard]] Instant now() const;
  // The present life of the worker. Its strand is free between events.
  [[nodiscard]] Node& node(std::string_view worker);
  [[nodiscard]] bool alive(std::string_view worker) const;
  [[nodiscard]] uint32_t life(std::string_view worker) const;
  // The life whose code is running, if any is: who asks is called by it.
  [[nodiscard]] std::optional<net_fake::LifeId> running() const;
  // How the main of the present life ended; null while it runs.
  [[nodiscard]] const Status* result(std::string_view worker) const;

 private:
  std::unique_ptr<ClusterParts> parts_;
};

}  // namespace rehearsal::sim
