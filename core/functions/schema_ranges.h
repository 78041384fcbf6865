#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace rehearsal {

// Why LibTorch must not see the value as this argument of a schema, whose type it has; empty: it
// may. An enumeration is a whole number in schemas, of which LibTorch indexes tables unseen; of a
// list of declared length it reads so many elements; and a device must be one that is here. Only
// what a call brings to an operator is checked: what the body of a script passes on to the
// operators in it is not.
[[nodiscard]] std::string why_out_of_range(const c10::IValue& value, const c10::Argument& argument);

// Why an operator that makes a list of tensors is not called with these arguments, all of them;
// empty: it is. It would make far more tensors than anybody wants to have sent.
[[nodiscard]] std::string why_too_many(const c10::FunctionSchema& schema,
                                       const std::vector<c10::IValue>& arguments);

// Why an operator of the table (pure_operators.h) is not called with these arguments, all of them,
// which LibTorch does not check: quantized tensors, whose kernels trust their sizes and forms;
// whole numbers that are divided and truncated, of which the lowest and -1 end the process; a
// product of very many matrices, whose plan takes time, memory and stack by their number. Empty: it
// is.
[[nodiscard]] std::string why_unchecked(const c10::FunctionSchema& schema,
                                        const std::vector<c10::IValue>& arguments);

}  // namespace rehearsal
