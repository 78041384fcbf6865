#pragma once

#include <string>

#include "command_line/run_settings.h"

namespace rehearsal::command_line {

// The text of a result that a command prints: letters that are no ASCII, and bytes that are no
// UTF-8, are written out, as text of others may be in it.
[[nodiscard]] inline std::string printed(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace rehearsal::command_line
