#pragma once

#include <string>

#include "core/base/error.h"
#include "core/base/runtime.h"
#include "core/functions/function.h"

// Any ATen operator, by schema name: "aten::add.Tensor", or "aten::add" for the overload that fits
// the arguments. Its arguments are SchemaArguments.
namespace rehearsal {

// Why there is no such operator, if so.
[[nodiscard]] MaybeError check_operator(const std::string& name);

// Inline if the tensors are small, else on a pool stack.
[[nodiscard]] StackPlacement placement_of_operator(const Payload& arguments);

// Calls it through the dispatcher. One result is an IValue, several are a tuple. Throws RpcError
// (bad_arguments) if the arguments do not fit the schema. A name without overload is the overload
// that the arguments fit: the one without a name, else the only one, else the only one for which no
// argument is converted; if several are as good, the error lists them. Overloads that write into an
// argument `out` are called by their full name only. REQUIRES: check_operator finds it.
[[nodiscard]] Returned call_operator(const std::string& name, Payload& arguments);

}  // namespace rehearsal
