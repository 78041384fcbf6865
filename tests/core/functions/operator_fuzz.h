#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/functions/allowed_operators.h"

namespace rehearsal {

// The bytes of the result of an operator that a peer calls, or "refused: " and why. It may take 32
// MiB.
[[nodiscard]] std::string outcome(const std::string& name, std::vector<c10::IValue> arguments,
                                  const AllowedOperators& allowed = {});

// An operator, and arguments that follow from a seed.
struct FuzzCase {
  std::string name;
  std::function<std::vector<c10::IValue>(uint64_t seed)> arguments;
};

struct FuzzOptions {
  uint64_t draws;  // of each case; REHEARSAL_OPERATOR_DRAWS=64 makes more, by hand
  // Tensors lie in GuardedMemory, each call is made twice, and oneDNN, which gives memory back to
  // the wrong allocator, is off; else all is as it is used. Only until this process has called its
  // first operator.
  bool guarded;
  AllowedOperators allowed = {};
};

// Calls each case with each seed in children of this process: those whose name has a part
// REHEARSAL_OPERATOR_NAMES, if that is set. A line for each that ended its process, took more than
// five seconds or more memory than it may, or, in guarded memory, showed some that nobody had
// written.
[[nodiscard]] std::string fuzz(const std::vector<FuzzCase>& cases, const FuzzOptions& options);

// The memory that this process has had at most, in KiB.
[[nodiscard]] int64_t memory_peak();

}  // namespace rehearsal
