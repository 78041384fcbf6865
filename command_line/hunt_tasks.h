// The runs of a hunt, as a numbered list. The failure with the smallest number is reported.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "command_line/commands.h"
#include "command_line/crew.h"

namespace rehearsal::command_line {

struct HuntTasks {
  std::optional<size_t> count;  // without: no end
  std::function<RunSettings(size_t)> settings_of;
  bool learns = false;  // later ones from earlier ones
  bool guided = false;  // some of them go on from what others showed
  // Instead of settings_of: the nth run of one of the command's scenarios, among which the hunt
  // shares its time; null: it does not.
  std::function<RunSettings(size_t, uint64_t)> nth_of = nullptr;
};

// The seeds of this shard, each for every scenario; without a number of seeds, as the hunt's time
// is shared among these.
[[nodiscard]] HuntTasks seed_tasks(const HuntCommand& command, const Backends& backends);

// The same, and each of these runs again for every event of every worker, with a crash of that
// worker before it. Simulates the runs without a crash first, to count the events; if one of them
// fails, it is the only task.
[[nodiscard]] HuntTasks crash_sweep_tasks(const Tool& tool, const HuntCommand& command);

// Children that simulate what they are given. A run that takes longer is ended.
[[nodiscard]] Crew make_crew(const Tool& tool, int jobs, Crew::Errors errors,
                             double run_seconds_max = kRunSecondsMax);

}  // namespace rehearsal::command_line
