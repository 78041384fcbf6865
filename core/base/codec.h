#pragma once

#include <memory>

#include "core/base/frame.h"
#include "core/base/result.h"

namespace rehearsal {

struct Message;  // core/wire/message.h

// Turns messages into frame bodies and back. Stateless to its callers; always runs, also between
// workers of one process.
class Codec {
 public:
  virtual ~Codec() = default;

  // The message's payload is ready to be sent (ValueWriter::finish): no code of LibTorch runs here.
  // The body fits a frame: its errors are shortened.
  [[nodiscard]] virtual std::shared_ptr<FrameBody> encode(const Message& message) = 0;

  // Every byte is checked: bad input is an Error of kind protocol. Tensors share the segments.
  [[nodiscard]] virtual Result<Message> decode(const FrameBody& body) = 0;
};

}  // namespace rehearsal
