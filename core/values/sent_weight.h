#pragma once

#include <cstdint>
#include <vector>

#include "core/values/sent_tensor.h"

namespace rehearsal {

// Whether a receiver would refuse a message with these tensors beside so many bytes of values: they
// would take more of its memory than its bytes may become (core/wire/decoded_weight.h), because
// they are many, and have few elements or none. As they are written in a stream, in an exception or
// as gradients; a call and its answer make less of them.
[[nodiscard]] bool are_too_heavy(const std::vector<SentTensor>& tensors, uint64_t value_bytes);

}  // namespace rehearsal
