#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rehearsal {

// Arguments with which an operator succeeds.
struct Example {
  std::string name;  // "aten::gather"
  std::function<std::vector<c10::IValue>()> make;
};

// Of operators that read indices, sizes or numbers out of tensors, or whose arguments must fit each
// other in ways that no draw finds. Some have several.
[[nodiscard]] std::vector<Example> operator_examples();

// The example with one to three faults that follow from the seed: an index or size that is out of
// range, a number that is none, a tensor or list that is shorter, longer, empty, turned or of
// another type.
[[nodiscard]] std::vector<c10::IValue> spoiled_arguments(const Example& example, uint64_t seed);

}  // namespace rehearsal
