#pragma once

#include <string>
#include <vector>

#include "sim/decisions/keyed_decisions.h"

namespace rehearsal::sim {

// The effect of a given decision, in a few words for people; `names` are the workers'.
[[nodiscard]] std::string in_words(const Override& override, const std::vector<std::string>& names);

// Whether it is of a message, a link or a worker, so that its words say where something happens;
// otherwise it is a number of the run's faults or of its strategy.
[[nodiscard]] bool says_where(const Override& override);

// A decision as KEY=VALUE, with the names of workers in the place of their numbers and back:
// `cut:1.0>0.0#7.0=1` is `cut:trainer.0>server.0#7.0=1`. A name with characters that a shell or a
// key could mistake stays a number. A text that is no decision is returned as it is.
[[nodiscard]] std::string with_names(const std::string& text,
                                     const std::vector<std::string>& names);
// Throws std::invalid_argument with a line that names the worker there is none of.
[[nodiscard]] std::string with_numbers(const std::string& text,
                                       const std::vector<std::string>& names);

}  // namespace rehearsal::sim
