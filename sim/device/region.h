#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace rehearsal::sim::device {

// The bytes of device memory that a tensor is made of. A view may leave some out between its first
// and its last.
struct Region {
  uintptr_t begin = 0;                  // the first byte
  uintptr_t end = 0;                    // behind the last
  bool dense = true;                    // all between belong to it
  std::vector<int64_t> sizes, strides;  // in elements; of no use where dense
  int64_t element_bytes = 1;

  [[nodiscard]] bool is_empty() const { return begin == end; }
};

// Of a defined tensor, whose data is not touched.
[[nodiscard]] Region region_of(const at::Tensor& tensor);

// Of all these bytes.
[[nodiscard]] inline Region region_of(uintptr_t begin, size_t bytes) {
  return {.begin = begin, .end = begin + bytes};
}

// Whether any byte belongs to both: exact, also for views that interleave.
[[nodiscard]] bool overlap(const Region& a, const Region& b);

// Whether all of `inner` surely belongs to `outer`.
[[nodiscard]] inline bool covers(const Region& outer, const Region& inner) {
  return outer.dense && outer.begin <= inner.begin && inner.end <= outer.end;
}

}  // namespace rehearsal::sim::device
