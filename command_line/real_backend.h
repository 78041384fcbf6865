// One worker over TCP, from the settings of the command line.
#pragma once

#include "command_line/backends.h"

namespace rehearsal::command_line {

// From rendezvous to shutdown. An error of the worker is in the outcome. Throws WrongUse if its
// place is missing or does not fit.
RunOutcome serve_real_worker(const RunSettings& settings, const WorkerPlace& place,
                             Reporter& reporter);

// Instead of that: see Backends::refuse.
void refuse_real_worker(const WorkerPlace& place, const std::string& why);

}  // namespace rehearsal::command_line
