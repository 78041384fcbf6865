#pragma once

#include <string>

#include "core/functions/function_registry.h"
#include "core/wire/message.h"

namespace rehearsal::sim {

// The content of a message, in one line for people: the function that a call names with the values
// of its arguments, the value or the error that answers it, the references. `answered` is the
// function that a response answers; null: it is not known, or not a response.
[[nodiscard]] std::string describe(const Message& message, const FunctionRegistry& registry,
                                   const Function* answered);

}  // namespace rehearsal::sim
