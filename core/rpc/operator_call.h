#pragma once

#include <string>

#include "core/base/error.h"
#include "core/base/runtime.h"
#include "core/rpc/function.h"

// Any ATen operator, by schema name: "aten::add.Tensor". Its arguments are a vector of IValues, in
// the order of the schema; those left out at the end take their defaults.
namespace rehearsal {

// Why there is no such operator, if so.
[[nodiscard]] MaybeError check_operator(const std::string& name);

// Inline if the tensors are small, else on a pool stack.
[[nodiscard]] Where where_of_operator(const Payload& arguments);

// Calls it through the dispatcher. One result is an IValue, several are a tuple. Throws RpcError
// (bad_arguments) if the arguments do not fit the schema.
[[nodiscard]] Returned call_operator(const std::string& name, Payload& arguments);

}  // namespace rehearsal
