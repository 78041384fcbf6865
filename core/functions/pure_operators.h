#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace rehearsal {

// How long an operator may take, beside the tensors that it is given.
enum class OperatorWork : uint8_t {
  // A few operations for each element of the shape that they all broadcast to.
  by_element,
  // As long as its numbers and sizes make it.
  any,
};

// Operators of one kind, without "aten::" and with their overloads, a blank between each two.
struct OperatorFamily {
  std::string_view what;
  std::string_view names;
  OperatorWork work = OperatorWork::any;
};

// LibTorch's operators that a peer may call without being asked for: each computes its results from
// its arguments and from random numbers alone, and checks these. It touches no file, no memory but
// its tensors', whatever the arguments are, shows no memory before it is written, and changes no
// argument. The table says what was left out, and why.
[[nodiscard]] std::span<const OperatorFamily> pure_operators();

// Whether one is among them, by its full name, "aten::add.Tensor" or "aten::relu".
[[nodiscard]] bool is_pure_operator(std::string_view full_name);

// Whether all overloads of the table that a call by this name may mean work by element; the name
// may be without overload.
[[nodiscard]] bool works_by_element(std::string_view name);

}  // namespace rehearsal
