#include "sim/world/spare_stacks.h"

#include "core/fibers/stack_pool.h"

namespace rehearsal::sim {

std::shared_ptr<fibers::StackPool> spare_stacks() { return std::make_shared<fibers::StackPool>(); }

}  // namespace rehearsal::sim
