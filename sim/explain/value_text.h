#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <string_view>

#include "core/values/payload.h"

namespace rehearsal::sim {

// The values of a payload in one line for people: `3, "w", float[2]{0.5, 1}`. `signature` is the
// wire signature of all of them, as functions have it (core/functions/function.h): "int64,bytes,".
// Long ones are cut short, and … stands for what only the program itself can read.
[[nodiscard]] std::string values_text(const Payload& payload, std::string_view signature);

// The same of what an operator or a script is called with: `float[2]{0.5, 1}, alpha=2`.
[[nodiscard]] std::string schema_values_text(const Payload& payload);

// The same without a signature: tensors, references, how many bytes there are beside them.
[[nodiscard]] std::string payload_text(const Payload& payload);

// "float[8,2]{0.5, 1, 1.5, 2, …}": type, sizes and the first elements, where they can be read.
[[nodiscard]] std::string tensor_text(const at::Tensor& tensor);
[[nodiscard]] std::string ivalue_text(const c10::IValue& value);

}  // namespace rehearsal::sim
