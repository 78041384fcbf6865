// Small pictures of the ten digits, drawn from a seed: letters of a dot matrix, shifted, more or
// less bright, in noise.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rehearsal::parameter_server {

inline constexpr int64_t kPictureSide = 10;
inline constexpr int64_t kDigitCount = 10;

struct Digits {
  at::Tensor pictures;  // float {count, 1, kPictureSide, kPictureSide}, about normalised
  at::Tensor labels;    // int64 {count}
};

// As many digits as asked for, in any order; the same for the same seed.
[[nodiscard]] Digits draw_digits(uint64_t seed, int64_t count);

// `count` of them from the first on.
[[nodiscard]] Digits part_of(const Digits& digits, int64_t first, int64_t count);

}  // namespace rehearsal::parameter_server
