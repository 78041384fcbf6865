#pragma once

#include <string>

#include "core/base/error.h"
#include "core/base/runtime.h"
#include "core/functions/allowed_operators.h"
#include "core/functions/function.h"

// An ATen operator that peers may call, by schema name: "aten::add.Tensor", or "aten::add" for the
// overload that fits the arguments. Its arguments are SchemaArguments.
namespace rehearsal {

// Why peers may not call such an operator, if so (unknown_function): there is none, or it is not
// among `allowed`; then the text says how to allow it.
[[nodiscard]] MaybeError check_operator(const std::string& name, const AllowedOperators& allowed);

// Inline if it works by element (pure_operators.h) on few elements, else on a pool stack: whoever
// runs inline bodies also keeps the node's links alive, and no number in a call may hold it up.
[[nodiscard]] StackPlacement placement_of_operator(const std::string& name,
                                                   const Payload& arguments);

// Calls it through the dispatcher. One result is an IValue, several are a tuple. Throws RpcError
// (bad_arguments) if the arguments do not fit the schema. A name without overload is the overload
// that the arguments fit, of those that are allowed: the one without a name, else the only one,
// else the only one for which no argument is converted; if several are as good, the error lists
// them. Overloads that write into an argument `out` are called by their full name only.
//
// Refused is what LibTorch does not check and that would end the process: numbers that are none of
// an enumeration (dtype, layout, memory format), a device that is not here, a result of very many
// tensors, what else an operator of the table does not check (why_unchecked), more memory than
// `bytes_max`, and a result that is larger. REQUIRES:
// check_operator finds it.
[[nodiscard]] Returned call_operator(const std::string& name, Payload& arguments,
                                     const AllowedOperators& allowed, uint64_t bytes_max);

}  // namespace rehearsal
