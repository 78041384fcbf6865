#pragma once

#include <span>
#include <string>
#include <vector>

namespace rehearsal::sim {

// The functions on the calling stack, innermost first, for those who look for a mistake, each with
// its source line where the program has line numbers: "add(int, int) at FILE:7". Static ones of
// this program are named, too: it reads this program's file, and so is slow. A function without a
// name is given as file and offset.
[[nodiscard]] std::vector<std::string> call_stack();

// The same of a stack that is known by its return addresses, as backtrace() gives them.
[[nodiscard]] std::vector<std::string> described(std::span<void* const> return_addresses);

}  // namespace rehearsal::sim
