#pragma once

#include <string>
#include <vector>

#include "command_line/scenario.h"

namespace rehearsal::command_line {

// `--devices`, as the settings keep it: how many simulated devices each worker has, or "drawn";
// "cuda:N", so many of the process's, if the workers are processes; or empty. Throws WrongUse for
// any other text, and for a scenario that uses none; `scenarios` tells which do.
[[nodiscard]] std::string parse_devices(const std::string& text, bool are_processes,
                                        const Scenario& scenario,
                                        const std::vector<Scenario>& scenarios);

// Whether that text means devices of CUDA.
[[nodiscard]] bool are_of_cuda(const std::string& text);

// How many that are in a run of this seed; of an empty text none.
[[nodiscard]] int devices_meant(const std::string& text, Seed seed);

}  // namespace rehearsal::command_line
