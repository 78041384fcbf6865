#include "core/values/payload.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/frame.h"

namespace rehearsal {

std::optional<uint64_t> tensor_bytes(c10::IntArrayRef sizes, uint64_t element_bytes) {
  if (sizes.size() > kDimensionsMax) return std::nullopt;
  uint64_t bytes = element_bytes;
  bool empty = false;
  for (const int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    empty |= size == 0;
    const uint64_t factor = std::max<int64_t>(size, 1);
    if (__builtin_mul_overflow(bytes, factor, &bytes) || bytes > kSegmentBytesMax)
      return std::nullopt;
  }
  return empty ? 0 : bytes;
}

std::vector<CarriedTensor> carried_tensors(const Payload& payload) {
  REHEARSAL_CHECK(payload.sent.size() == payload.tensors.size(), "it is not ready to be sent");
  std::vector<CarriedTensor> carried;
  for (size_t i = 0; i < payload.sent.size(); ++i)
    carried.push_back({payload.tensors[i], payload.sent[i].version});
  return carried;
}

}  // namespace rehearsal
