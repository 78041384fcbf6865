#pragma once

#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/wait_view.h"
#include "sim/oracle.h"

namespace rehearsal::sim {

// The waits of one worker's node.
struct NodeWaits {
  WorkerId worker;
  std::string name;
  WaitViews views;
};

// The wait-for graph as text. Its nodes are the stacks that are parked; an edge leads from a stack
// through the call that it waits for, or whose future it waits for, to the stack that serves the
// call; and to the stack that holds the mutex that it waits for. A line for each stack, then for
// each call that is not answered although nothing runs for it at its callee, then each cycle, by
// its stacks in order: as long as all in it wait, none can go on.
[[nodiscard]] std::string describe_wait_graph(const std::vector<NodeWaits>& nodes);

// A stack of a cycle.
struct Deadlocked {
  WorkerId worker;
  Hash128 path;
  std::string who;  // "take at store"
  bool operator==(const Deadlocked&) const = default;
};

// The first cycle of which all is known: each stack in it waits for one call, by name, or for a
// mutex, with no time of its own. Nothing but the end of a call, of a worker, or of the time that a
// call may take, ends it. Empty: there is none.
[[nodiscard]] std::vector<Deadlocked> deadlock_in(const std::vector<NodeWaits>& nodes);

// Whether this life's main runs, and its node can be looked at.
[[nodiscard]] bool runs(const LifeView& life);

// Those lives: their names, and their wait-for graph, after a line for each that has code which
// goes on without waiting for anything.
[[nodiscard]] std::string names_of_running(const ClusterView& cluster);
[[nodiscard]] std::string describe_waits(const ClusterView& cluster);
[[nodiscard]] std::vector<NodeWaits> waits_of(const ClusterView& cluster);

}  // namespace rehearsal::sim
