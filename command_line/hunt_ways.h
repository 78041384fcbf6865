#pragma once

#include <vector>

#include "command_line/run_settings.h"

namespace rehearsal::command_line {

// The ways in which a hunt searches a scenario when it is left to choose: with the faults that the
// scenario draws for each seed; under hostile ones, with a worker that crashes and may come back;
// under hostile ones, with workers that lose each other though none has ended; with the crash on
// simulated devices, if it places tensors on them; under hostile ones with a worker that lies. All
// that `asked` gives stays as it is in each of them, and no way comes twice.
[[nodiscard]] std::vector<RunSettings> ways_of(const RunSettings& asked);

}  // namespace rehearsal::command_line
