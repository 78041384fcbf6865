#include "scenarios/parameter_server/net.h"

#include "scenarios/parameter_server/digits.h"

namespace rehearsal::parameter_server {
namespace {

constexpr int64_t kKernel = 3;
constexpr int64_t kPool = 2;
constexpr int64_t kPooledSide = (kPictureSide - 2 * (kKernel - 1)) / kPool;

}  // namespace

Net::Net(const NetSizes& sizes)
    : drops_(sizes.drops),
      conv1_(register_module(
          "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, sizes.channels, kKernel)))),
      conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(
                                          sizes.channels, 2 * sizes.channels, kKernel)))),
      hidden_(register_module(
          "hidden",
          torch::nn::Linear(2 * sizes.channels * kPooledSide * kPooledSide, sizes.hidden))),
      out_(register_module("out", torch::nn::Linear(sizes.hidden, kDigitCount))) {}

torch::Tensor Net::forward(const torch::Tensor& pictures, bool training) {
  const auto with_copies = [](auto function, const auto& layer, const torch::Tensor& input) {
    return function(input, layer->weight.clone(), layer->bias.clone());
  };
  const auto convolve = [](const torch::Tensor& input, const torch::Tensor& weight,
                           const torch::Tensor& bias) {
    return torch::conv2d(input, weight, bias);
  };
  const auto multiply = [](const torch::Tensor& input, const torch::Tensor& weight,
                           const torch::Tensor& bias) {
    return torch::linear(input, weight, bias);
  };
  torch::Tensor x = torch::relu(with_copies(convolve, conv1_, pictures));
  x = torch::max_pool2d(with_copies(convolve, conv2_, x), kPool);
  x = torch::flatten(torch::dropout(x, 0.25, drops_ && training), 1);
  x = torch::relu(with_copies(multiply, hidden_, x));
  x = torch::dropout(x, 0.5, drops_ && training);
  return torch::log_softmax(with_copies(multiply, out_, x), 1);
}

}  // namespace rehearsal::parameter_server
