#pragma once

#include <string>

#include "sim/run_failure.h"

namespace rehearsal::sim {

// The kind of a failure's object, without which one: words with a digit in them are names and
// numbers, and each becomes a *. Two failures are alike if the same oracle failed on objects of the
// same kind.
[[nodiscard]] std::string kind_of_object(const std::string& object);
[[nodiscard]] bool alike(const RunFailure& one, const RunFailure& other);

}  // namespace rehearsal::sim
