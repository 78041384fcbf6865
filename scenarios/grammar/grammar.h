#pragma once

#include "command_line/scenario.h"

namespace rehearsal {

// Programs drawn from a grammar: terms of calls in every form, references, streams, continuations
// and failures, in each other as deep as they are large, checked against a sequential model.
[[nodiscard]] Scenario grammar_scenario();

}  // namespace rehearsal
