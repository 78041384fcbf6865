#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/trace.h"
#include "core/wire/message.h"
#include "sim/explain/history.h"

namespace rehearsal::sim {

// Of a message with recorded tensors, and of every message of a backward pass; others have none.
[[nodiscard]] std::optional<AutogradNote> autograd_note(const Message& message);

// Of pass_started and pass_ended; other events have none.
[[nodiscard]] std::optional<AutogradNote> autograd_note(const Event& event);

// How the pictures draw a message of a backward pass.
enum class PassTraffic : uint8_t { none, gradients, marks, waves };

// By the name of a message: "GradientsAnswered" is one of the gradients, "PassFailed" of the waves.
[[nodiscard]] PassTraffic pass_traffic(std::string_view message_name);

}  // namespace rehearsal::sim
