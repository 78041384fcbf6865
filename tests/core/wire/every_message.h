#pragma once

#include <vector>

#include "core/wire/message.h"

namespace rehearsal {

// Values, tensors of every form, and a reference.
[[nodiscard]] Payload payload_of_every_form();

// At least one message of each kind, with something in every field, ready to be encoded.
[[nodiscard]] std::vector<Message> every_message();

}  // namespace rehearsal
