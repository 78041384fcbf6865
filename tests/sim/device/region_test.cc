#include "sim/device/region.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <random>
#include <set>

namespace rehearsal::sim::device {
namespace {

// All bytes of a tensor, one by one.
std::set<uintptr_t> bytes_of(const torch::Tensor& tensor) {
  std::set<uintptr_t> bytes;
  const torch::Tensor flat = tensor.reshape({-1});  // only for the count
  std::vector<int64_t> at(static_cast<size_t>(tensor.dim()), 0);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    int64_t rest = i, offset = 0;
    for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
      offset += rest % tensor.size(d) * tensor.stride(d);
      rest /= tensor.size(d);
    }
    const auto first = reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) +
                       static_cast<uintptr_t>(offset * tensor.element_size());
    for (int64_t b = 0; b < tensor.element_size(); ++b)
      bytes.insert(first + static_cast<uintptr_t>(b));
  }
  return bytes;
}

torch::Tensor drawn_view(const torch::Tensor& whole, std::mt19937& random) {
  torch::Tensor view = whole;
  for (int i = 0; i < 3; ++i) {
    const auto dimension = static_cast<int64_t>(random() % 3);
    const auto begin = static_cast<int64_t>(random() % 3);
    switch (random() % 4) {
      case 0:
        view = view.slice(dimension, begin, view.size(dimension), 1 + random() % 2);
        break;
      case 1:
        view = view.transpose(0, dimension);
        break;
      case 2:
        if (view.size(dimension) > begin) view = view.narrow(dimension, begin, 1);
        break;
      default:
        if (view.size(dimension) == 1 && random() % 2 == 0)
          view = view.expand(
              {dimension == 0 ? 2 : -1, dimension == 1 ? 2 : -1, dimension == 2 ? 2 : -1});
    }
  }
  return view;
}

// Goal: whether views touch the same bytes is exact, compared with counting all bytes.
TEST(Region, OverlapsExactlyWhereBytesAreShared) {
  std::mt19937 random(1);
  const torch::Tensor whole = torch::zeros({4, 3, 4});
  int overlaps = 0, apart = 0;
  for (int i = 0; i < 3000; ++i) {
    const torch::Tensor a = drawn_view(whole, random), b = drawn_view(whole, random);
    const std::set<uintptr_t> left = bytes_of(a), right = bytes_of(b);
    const bool shared = std::ranges::any_of(left, [&](auto byte) { return right.contains(byte); });
    EXPECT_EQ(overlap(region_of(a), region_of(b)), shared)
        << a.sizes() << a.strides() << b.sizes() << b.strides();
    if (covers(region_of(a), region_of(b))) EXPECT_TRUE(std::ranges::includes(left, right));
    (shared ? overlaps : apart) += 1;
  }
  EXPECT_GT(overlaps, 300);
  EXPECT_GT(apart, 300);
}

}  // namespace
}  // namespace rehearsal::sim::device
