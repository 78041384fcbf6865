#pragma once

#include <string>
#include <vector>

#include "core/api/program.h"
#include "tests/worlds/strand_trace.h"

namespace rehearsal::test {

// Runs a program of two workers over TCP on loopback: worker 1 in this process, worker 0 in a
// child. Gives the lines of both traces, by worker. Throws std::runtime_error if a worker fails.
[[nodiscard]] std::vector<std::vector<std::string>> traces_over_tcp(const Program& program);

// The same in the simulator, on a network without faults.
[[nodiscard]] std::vector<std::vector<std::string>> traces_in_simulator(const Program& program);

}  // namespace rehearsal::test
