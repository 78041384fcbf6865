// The classifier of PyTorch's example (examples/distributed/rpc/parameter_server), smaller: two
// convolutions, a pool and two linear layers.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>

namespace rehearsal::parameter_server {

struct NetSizes {
  int64_t channels = 1;  // of the first convolution; the second has twice as many
  int64_t hidden = 1;
  bool drops = false;  // 0.25 behind the pool and 0.5 in front of the last layer, in training

  friend void describe(NetSizes& sizes, auto&& fields) {
    fields(sizes.channels, sizes.hidden, sizes.drops);
  }
};

class Net : public torch::nn::Module {
 public:
  explicit Net(const NetSizes& sizes);

  // float {rows, 1, kPictureSide, kPictureSide} to the logarithms of the probabilities of each
  // digit. It computes with copies of the parameters: another trainer's step may change them in
  // place before the backward pass comes back to this forward pass, and LibTorch refuses to
  // differentiate with values that have changed. The gradients are those at the copies.
  torch::Tensor forward(const torch::Tensor& pictures, bool training);

 private:
  const bool drops_;
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::Conv2d conv2_{nullptr};
  torch::nn::Linear hidden_{nullptr};
  torch::nn::Linear out_{nullptr};
};

}  // namespace rehearsal::parameter_server
