#pragma once

#include <memory>

namespace rehearsal::fibers {
class StackPool;
}

namespace rehearsal::sim {

// Stacks for runs that follow each other on one thread, as ClusterOptions::stacks: to make them
// anew for each costs as much as dozens of calls. They must outlive the clusters.
[[nodiscard]] std::shared_ptr<fibers::StackPool> spare_stacks();

}  // namespace rehearsal::sim
