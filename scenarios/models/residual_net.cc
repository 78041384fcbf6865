#include "scenarios/models/residual_net.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

namespace rehearsal::models {
namespace {

constexpr int64_t kKernel = 3;

}  // namespace

at::Tensor draw_weight(at::IntArrayRef shape, int64_t inputs, const at::Generator& generator) {
  const double limit = 1 / std::sqrt(static_cast<double>(inputs));
  return at::rand(shape, generator) * (2 * limit) - limit;
}

at::Tensor draw_kernel(int64_t from, int64_t to, const at::Generator& generator) {
  return draw_weight({to, from, kKernel, kKernel}, from * kKernel * kKernel, generator);
}

at::Tensor convolve(const at::Tensor& input, const at::Tensor& kernel) {
  return at::conv2d(input, kernel, /*bias=*/{}, /*stride=*/1, /*padding=*/1);
}

at::Tensor residual_block(const at::Tensor& input, const at::Tensor& first,
                          const at::Tensor& second) {
  return at::relu(input + convolve(at::relu(convolve(input, first)), second));
}

at::Tensor class_scores(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(input.mean({2, 3}), weight, bias);
}

LabelledPictures draw_pictures(int64_t rows, int64_t side, int64_t classes,
                               const at::Generator& generator) {
  const at::Tensor pictures = at::randn({rows, kColours, side, side}, generator);
  const at::Tensor labels = at::randint(classes, {rows}, generator, at::kLong);
  return {pictures, at::eye(classes).index_select(0, labels)};
}

}  // namespace rehearsal::models
