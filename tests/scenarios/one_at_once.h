// Two workers that wait for each other at a third, which executes one function at once: only an
// answer that holds no execution lets both through.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "tests/reference/row.h"

namespace rehearsal::one_at_once {

inline void adjust_node(NodeOptions& node) { node.execution_limit = 1; }

// 0 or 1.
inline int64_t number_of(const Worker& asker) { return asker.name().back() - '0'; }

template <class T>
using Ask = std::function<void(Worker& asker, const RRef<T>& served)>;

// The worker `owner` has a T, made from `settings`, of which both of `askers` ask something.
template <class T, class Settings>
Program program(FunctionRegistry registry, const std::string& owner, const std::string& askers,
                const Settings& settings, const Ask<T>& ask) {
  Program made(std::move(registry));
  made.worker(owner, [owner, settings](Worker& worker) {
    worker.publish("served", worker.remote<T>(owner, settings));
  });
  made.worker(
      askers, [owner, ask](Worker& worker) { ask(worker, worker.lookup<T>(owner, "served")); },
      Count{2});
  return made;
}

// How each asker fails, by name. `program_of(ask)`: the program above.
template <class T>
std::map<std::string, ErrorKind> failures(const std::function<Program(const Ask<T>&)>& program_of,
                                          const Ask<T>& ask) {
  std::map<std::string, ErrorKind> kinds;
  const Program made = program_of([&](Worker& asker, const RRef<T>& served) {
    kinds[asker.name()] = reference::kind_of([&] { ask(asker, served); });
  });
  sim::ClusterOptions options;
  options.adjust_node = adjust_node;
  sim::Cluster(Seed{1}, made, options).run();
  return kinds;
}

}  // namespace rehearsal::one_at_once
