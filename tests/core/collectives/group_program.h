#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/api/process_group.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "core/base/hash.h"

// Members of a process group, and tensors that depend on numbers only.
namespace rehearsal::testing {

inline bool equal_bits(const at::Tensor& first, const at::Tensor& second) {
  if (first.dtype() != second.dtype() || first.sizes() != second.sizes()) return false;
  const at::Tensor a = first.contiguous();
  const at::Tensor b = second.contiguous();
  return a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// Whole numbers from -2 to 2, so that every type holds their sums and products exactly.
inline at::Tensor whole_numbers(at::IntArrayRef sizes, at::ScalarType type, uint64_t seed) {
  const int64_t count = c10::multiply_integers(sizes);
  const at::Tensor numbers = (at::arange(count) * 7 + static_cast<int64_t>(seed % 1009) * 3) % 5;
  return (type == at::kByte || type == at::kBool ? numbers % 3 : numbers - 2)
      .reshape(sizes)
      .to(type);
}

// Numbers whose sum depends on the order in which they are added.
inline at::Tensor rough_numbers(at::IntArrayRef sizes, uint64_t seed) {
  const int64_t count = c10::multiply_integers(sizes);
  return at::sin(at::arange(count, at::kDouble) * 12.9898 + static_cast<double>(seed % 1000003))
      .mul(static_cast<double>(1 + seed % 7))
      .to(at::kFloat)
      .reshape(sizes);
}

// Workers member0, member1, …, that all do the same.
inline Program members(uint32_t count, const Program::Main& main) {
  Program program{FunctionRegistry()};
  program.worker("member", main, Count{count});
  return program;
}

// The error that `body` throws; the kind `storage` if none.
template <class Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const RpcError& thrown) {
    return thrown.error();
  }
  return {.kind = ErrorKind::storage, .text = "nothing was thrown"};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace rehearsal::testing
