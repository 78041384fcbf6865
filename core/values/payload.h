#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"

namespace rehearsal {

class RRefHandle;  // core/api/rref_handle.h

// A fork of a remote reference on its way from parent to child.
struct Fork {
  RRefId rref;
  ForkId id;
  bool owner_is_parent = false;  // then it is registered already
};

// Encoded values: small ones as bytes, tensors and remote references beside them. The bytes name
// both by their position.
struct Payload {
  std::string values;
  std::vector<at::Tensor> tensors;
  std::vector<std::shared_ptr<RRefHandle>> handles;  // never cross the network: forks do
  std::vector<Fork> forks;                           // one for each handle, once prepared
};

// Of a tensor that is sent.
inline constexpr size_t kDimensionsMax = 64;

// The bytes of a dense tensor's elements; none if it is beyond what can be sent. Zero-size tensors
// are held to the same limits in their other dimensions.
[[nodiscard]] std::optional<uint64_t> tensor_bytes(c10::IntArrayRef sizes, uint64_t element_bytes);

// With its call's place, the origin of the path of a payload's forks.
inline constexpr uint64_t kArgumentForks = 1;
inline constexpr uint64_t kResultForks = 2;
inline constexpr uint64_t kItemForks = 3;  // and the position of a stream's value more

}  // namespace rehearsal
