#include "sim/device/region.h"

#include <algorithm>
#include <utility>

namespace rehearsal::sim::device {
namespace {

// A run of bytes, from the first to behind the last.
using Run = std::pair<uintptr_t, uintptr_t>;

// All runs of a region in the order of memory.
std::vector<Run> runs_of(const Region& region) {
  if (region.dense) return {{region.begin, region.end}};
  std::vector<Run> runs{{region.begin, region.begin + region.element_bytes}};
  for (size_t i = 0; i < region.sizes.size(); ++i) {
    if (region.sizes[i] == 1 || region.strides[i] == 0) continue;
    const auto step = static_cast<uintptr_t>(region.strides[i] * region.element_bytes);
    std::vector<Run> repeated;
    repeated.reserve(runs.size() * static_cast<size_t>(region.sizes[i]));
    for (int64_t k = 0; k < region.sizes[i]; ++k)
      for (const auto& [begin, end] : runs)
        repeated.emplace_back(begin + static_cast<uintptr_t>(k) * step,
                              end + static_cast<uintptr_t>(k) * step);
    runs = std::move(repeated);
  }
  std::ranges::sort(runs);
  return runs;
}

}  // namespace

Region region_of(const at::Tensor& tensor) {
  Region region;
  if (tensor.numel() == 0) return region;
  region.element_bytes = static_cast<int64_t>(tensor.element_size());
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  region.begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  region.end = region.begin + static_cast<uintptr_t>((last + 1) * region.element_bytes);
  region.dense = last + 1 == tensor.numel() && tensor.is_non_overlapping_and_dense();
  if (!region.dense) {
    region.sizes = tensor.sizes().vec();
    region.strides = tensor.strides().vec();
  }
  return region;
}

bool overlap(const Region& a, const Region& b) {
  if (a.end <= b.begin || b.end <= a.begin) return false;
  if (a.dense && b.dense) return true;
  const std::vector<Run> left = runs_of(a), right = runs_of(b);
  for (size_t i = 0, j = 0; i < left.size() && j < right.size();) {
    if (left[i].second <= right[j].first) {
      ++i;
    } else if (right[j].second <= left[i].first) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace rehearsal::sim::device
