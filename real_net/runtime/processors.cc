#include "real_net/runtime/processors.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>

namespace rehearsal::real {
namespace {

namespace fs = std::filesystem;

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

// The share of a period that a group may run: `quota` is a number of microseconds, or a word.
double share(const std::string& quota, double period) {
  std::istringstream text(quota);
  double microseconds = 0;
  if (!(text >> microseconds) || microseconds <= 0 || period <= 0) return kNoQuota;
  return microseconds / period;
}

// Of one group, of either version.
double quota_in(const fs::path& group) {
  std::string quota;
  double period = 0;
  if (std::ifstream second(group / "cpu.max"); second >> quota >> period)
    return share(quota, period);
  std::ifstream first(group / "cpu.cfs_quota_us");
  std::ifstream first_period(group / "cpu.cfs_period_us");
  if (first >> quota && first_period >> period) return share(quota, period);
  return kNoQuota;
}

// A line of /proc/PID/cgroup, "number:controllers:path"; nothing if it is not about processors.
struct Membership {
  std::string controllers;  // empty: version 2
  std::string path;
};

std::optional<Membership> membership_of(const std::string& line) {
  const size_t first = line.find(':');
  if (first == std::string::npos) return std::nullopt;
  const size_t second = line.find(':', first + 1);
  if (second == std::string::npos) return std::nullopt;
  Membership found{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
  const std::string list = "," + found.controllers + ",";
  if (!found.controllers.empty() && list.find(",cpu,") == std::string::npos) return std::nullopt;
  return found;
}

// In a container the path is often one that only the host has: then the mount is the group itself.
double quota_along(const fs::path& mount, const std::string& path) {
  double least = quota_in(mount);
  fs::path group = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    group /= part;
    least = std::min(least, quota_in(group));
  }
  return least;
}

int processors_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  // A machine with more processors than the set has room for.
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

double processor_quota(const ControlGroupFiles& files) {
  double least = kNoQuota;
  std::ifstream own(files.own);
  for (std::string line; std::getline(own, line);) {
    const std::optional<Membership> member = membership_of(line);
    if (!member) continue;
    const fs::path mount = fs::path(files.mount) / member->controllers;
    least = std::min(least, quota_along(mount, member->path));
  }
  return least;
}

double usable_processors(const ControlGroupFiles& files) {
  return std::min(static_cast<double>(processors_of_affinity()), processor_quota(files));
}

}  // namespace rehearsal::real
