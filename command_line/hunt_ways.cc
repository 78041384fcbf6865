#include "command_line/hunt_ways.h"

#include <set>
#include <utility>

namespace rehearsal::command_line {
namespace {

RunSettings under_hostile_faults(RunSettings way) {
  if (!way.faults) way.faults = sim::FaultLevel::hostile;
  if (!way.crashes) way.crashes = 1;
  return way;
}

}  // namespace

std::vector<RunSettings> ways_of(const RunSettings& asked) {
  std::vector<RunSettings> ways;
  std::set<std::vector<std::string>> known;
  const auto add = [&](RunSettings way) {
    if (known.insert(run_arguments(way)).second) ways.push_back(std::move(way));
  };
  add(asked);
  RunSettings comes_back = under_hostile_faults(asked);
  if (!comes_back.restarts) comes_back.restarts = sim::Restart::drawn;
  add(comes_back);
  RunSettings lose_each_other = asked;
  if (!lose_each_other.faults) lose_each_other.faults = sim::FaultLevel::hostile;
  if (!lose_each_other.long_partitions) lose_each_other.long_partitions = true;
  if (!lose_each_other.long_pauses) lose_each_other.long_pauses = true;
  add(std::move(lose_each_other));
  if (asked.scenario->uses_devices) {
    RunSettings on_devices = comes_back;
    if (on_devices.devices.empty()) on_devices.devices = "drawn";
    add(std::move(on_devices));
  }
  RunSettings lies = under_hostile_faults(asked);
  if (!lies.mad) lies.mad = 1;
  add(std::move(lies));
  return ways;
}

}  // namespace rehearsal::command_line
