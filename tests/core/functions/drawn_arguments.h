#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rehearsal {

// Numbers that follow from a seed.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t bound);
  bool one_in(uint64_t bound) { return below(bound) == 0; }

 private:
  uint64_t state_;
};

inline constexpr int kBadnessMax = 4;

[[nodiscard]] int64_t drawn_integer(Draw& draw, int badness);
[[nodiscard]] double drawn_number(Draw& draw, int badness);
[[nodiscard]] std::string drawn_text(Draw& draw);

// A value for each argument, mostly of its type and seldom sensible: sizes and indices that are
// negative, huge or out of range, tensors that are empty, undefined, of another type, rank or
// layout, and numbers that are no number. The lower `badness` is (from 0 to kBadnessMax - 1), the
// likelier it is that they fit each other, so that the operator goes far.
[[nodiscard]] std::vector<c10::IValue> drawn_arguments(const c10::FunctionSchema& schema,
                                                       uint64_t seed, int badness);

}  // namespace rehearsal
