#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

namespace rehearsal {

// Where the gradients of a tensor would be lost: it came from another worker, requires gradients,
// and is recorded in no context. It stays an ordinary leaf for LibTorch's own backward, but a
// distributed pass that reaches it fails. The mark is part of the tensor and dies with it; what
// `detach` gives has none.

// `how` says for people how it came: "the result of 'forward', which 'ps' sent to 'trainer' …".
// A leaf that requires gradients, and that nobody else has seen yet.
void mark_as_unrecorded(const at::Tensor& leaf, std::shared_ptr<const std::string> how);

// Null if the tensor has no mark. Of a leaf that requires gradients, or once did.
[[nodiscard]] const std::string* how_it_came(const at::Tensor& leaf);

// Throws RpcError (autograd) if the tensor has a mark.
void refuse_unrecorded(const at::Tensor& leaf);

}  // namespace rehearsal
