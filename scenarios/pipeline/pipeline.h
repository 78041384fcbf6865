// `pipeline`: PyTorch's example of a model in parts: a residual net in stages at several workers,
// through which micro-batches run. Every bit is compared with the same net in one process.
#pragma once

#include "command_line/scenario.h"

namespace rehearsal::pipeline {

struct Settings;

[[nodiscard]] Scenario scenario();
// The training that these options of it ask for.
[[nodiscard]] Settings settings_of(const Options& options, Seed seed);

}  // namespace rehearsal::pipeline
