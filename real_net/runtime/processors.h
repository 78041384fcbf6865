#pragma once

#include <string>

namespace rehearsal::real {

// Where the kernel tells of control groups; another folder in tests.
struct ControlGroupFiles {
  std::string own = "/proc/self/cgroup";  // the groups of this process
  std::string mount = "/sys/fs/cgroup";   // of all groups; one folder for each controller in v1
};

// The processors that the calling thread may use at one time: those that the kernel may place it
// on (its affinity), and no more than the quota of its control groups and of those above them
// leaves (cpu.max of version 2, cpu.cfs_quota_us of version 1). May be less than one. The machine
// may have more.
[[nodiscard]] double usable_processors(const ControlGroupFiles& files = {});

// The quota alone, in processors; infinity where there is none or none can be read.
[[nodiscard]] double processor_quota(const ControlGroupFiles& files);

}  // namespace rehearsal::real
