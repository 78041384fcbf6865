// The parts of a residual net in which nothing normalises over a batch, and the pictures that it
// learns. The same state of the generator draws the same.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rehearsal::models {

inline constexpr int64_t kColours = 3;

// Uniform within ±1/√inputs.
[[nodiscard]] at::Tensor draw_weight(at::IntArrayRef shape, int64_t inputs,
                                     const at::Generator& generator);
// float {to, from, 3, 3}
[[nodiscard]] at::Tensor draw_kernel(int64_t from, int64_t to, const at::Generator& generator);

// float {rows, from, side, side} to float {rows, to, side, side}.
[[nodiscard]] at::Tensor convolve(const at::Tensor& input, const at::Tensor& kernel);
// Two convolutions, with a way around them.
[[nodiscard]] at::Tensor residual_block(const at::Tensor& input, const at::Tensor& first,
                                        const at::Tensor& second);
// The scores of each class, float {rows, classes}, from the mean of each channel.
[[nodiscard]] at::Tensor class_scores(const at::Tensor& input, const at::Tensor& weight,
                                      const at::Tensor& bias);

struct LabelledPictures {
  at::Tensor pictures;  // float {rows, kColours, side, side}
  at::Tensor targets;   // rows of a table of labels, each with a single 1
};

// Random pictures, each of a class of its own choice.
[[nodiscard]] LabelledPictures draw_pictures(int64_t rows, int64_t side, int64_t classes,
                                             const at::Generator& generator);

}  // namespace rehearsal::models
