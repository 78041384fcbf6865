#pragma once

#include <string>

#include "core/functions/function_registry.h"
#include "core/wire/message.h"

namespace rehearsal::sim {

// The content of a message, in one line for people: the function that a call names, the tensors it
// carries with their types and sizes, the references, the error.
[[nodiscard]] std::string describe(const Message& message, const FunctionRegistry& registry);

}  // namespace rehearsal::sim
