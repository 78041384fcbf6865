#pragma once

#include <type_traits>
#include <utility>

#include "core/values/sent_tensor.h"
#include "core/wire/message.h"

namespace rehearsal {

// Tensors that a test has put into a payload by hand, made ready to be sent as ValueWriter does.
inline void make_ready(Payload& payload) {
  DeviceCopies none;
  payload.sent = sent_tensors(payload.tensors, payload.places(), none);
}

[[nodiscard]] inline Message ready(Message message) {
  std::visit(
      [](auto& content) {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, Call>)
          make_ready(content.arguments);
        else if constexpr (std::is_same_v<Content, Gradients>)
          make_ready(content.gradients);
        else if constexpr (requires { make_ready(content.value); })
          make_ready(content.value);
      },
      message.content);
  return message;
}

}  // namespace rehearsal
