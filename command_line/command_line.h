// The command line `rehearsal`, for the scenarios of this repository and for those of anybody else.
#pragma once

#include <vector>

#include "command_line/backends.h"
#include "command_line/scenario.h"

namespace rehearsal {

// Returns the value for a program's own `main` to return. Exit status: 0 the run holds; 1 it
// failed, or its output could not be written; 2 wrong usage, with one line that says what to type
// instead; 3 nondeterminism found by `verify`. Standard input, output and error that are closed are
// opened on /dev/null.
//
// The binary starts itself again as child processes, so `main` must do nothing else before this
// call that a second process must not do. Where it can, a child is a copy of this process (fork),
// which spares it the loading of LibTorch: what `main` and a scenario's `program` have made by then
// is there, too. So it is not where there are threads, or a device is open.
int main(int argc, char** argv, const std::vector<Scenario>& scenarios);

namespace command_line {

// The same with other backends.
int main(int argc, char** argv, const std::vector<Scenario>& scenarios, const Backends& backends);

}  // namespace command_line
}  // namespace rehearsal
