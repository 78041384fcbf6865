// A residual net as a function of its parameters, for those who get them by value, and the pictures
// that it learns. Nothing in it normalises over a batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "scenarios/models/residual_net.h"

namespace rehearsal::batch_parameter_server {

struct NetSizes {
  int64_t side = 1;  // of a picture, which has three colours
  int64_t channels = 1;
  int64_t blocks = 1;  // of two convolutions each
  int64_t classes = 1;

  friend void describe(NetSizes& sizes, auto&& fields) {
    fields(sizes.side, sizes.channels, sizes.blocks, sizes.classes);
  }
};

// Leaves that require gradients. The same for the same seed.
[[nodiscard]] std::vector<at::Tensor> draw_parameters(const NetSizes& sizes, uint64_t seed);

// float {rows, 3, side, side} to the scores of each class, float {rows, classes}.
[[nodiscard]] at::Tensor net_forward(const std::vector<at::Tensor>& parameters,
                                     const at::Tensor& pictures);

using Batch = models::LabelledPictures;

// The same for the same seed.
[[nodiscard]] Batch draw_batch(const NetSizes& sizes, int64_t rows, uint64_t seed);

// Mean-square; on the device of the parameters.
[[nodiscard]] at::Tensor net_loss(const std::vector<at::Tensor>& parameters, const Batch& batch);

}  // namespace rehearsal::batch_parameter_server
