#pragma once

#include <span>
#include <string_view>

namespace rehearsal {

// Operators of one kind, without "aten::" and with their overloads, a blank between each two.
struct OperatorFamily {
  std::string_view what;
  std::string_view names;
};

// LibTorch's operators that a peer may call without being asked for: each computes its results from
// its arguments and from random numbers alone, and checks these. It touches no file, no memory but
// its tensors', whatever the arguments are, shows no memory before it is written, and changes no
// argument. The table says what was left out, and why.
[[nodiscard]] std::span<const OperatorFamily> pure_operators();

}  // namespace rehearsal
