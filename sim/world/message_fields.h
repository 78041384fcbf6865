#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/wire/message.h"

namespace rehearsal::sim {

// A number in a message, also one of an id in it; how many elements a list has; or whether
// something is there.
struct MessageField {
  std::string name;  // with the message's: "Call.target.owner"; of all elements of a list the same
  uint64_t max = 0;  // greater ones cannot be read
  std::function<uint64_t()> get;
  std::function<void(uint64_t)> set;  // one greater than `max` counts as `max`
};

// The fields of a message, named as in messages.proto. Bytes, tensors and texts are none. They end
// with the message, and when a list or an optional part is set.
[[nodiscard]] std::vector<MessageField> fields_of(Message& message);

// An empty message of this type; of marks, one. REQUIRES: type > 0.
[[nodiscard]] Message empty_message(uint32_t type);
inline constexpr uint32_t kMessageTypes = std::variant_size_v<MessageContent> - 1;

}  // namespace rehearsal::sim
