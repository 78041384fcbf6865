#pragma once

#include <string_view>

namespace rehearsal::fibers {

// Ends the process: `what` is used where Boost.Fiber lets no exception through, by the execution
// that runs. The line says why it may not be, and what to do instead.
[[noreturn]] void refuse(std::string_view what, std::string_view why) noexcept;

}  // namespace rehearsal::fibers
