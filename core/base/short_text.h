#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rehearsal {

struct Error;

// Texts that user code can make as long as it likes are kept short where an error is made of them,
// and once more where that is written into a message, whoever made it. The rest is counted:
// "… and 67,043,328 bytes more". A text that was cut before, and has grown on its way, is cut as a
// whole.

// A text of an error, and of where it was thrown: of a longer one so many bytes are kept. The
// difference leaves room for what is said around one that was cut.
inline constexpr size_t kErrorTextMax = 72 * 1024;
inline constexpr size_t kErrorTextKept = 64 * 1024;

// The name of a worker, a function or a type: so many bytes of a longer one are kept.
inline constexpr size_t kErrorNameMax = 4 * 1024;

// The workers that an error passed through: so many of them, and a last line "… and 7 more".
inline constexpr size_t kErrorChainMax = 100;

// A short error takes so many bytes of a message at most.
inline constexpr size_t kErrorBytesMax = 640 * 1024;

[[nodiscard]] std::string short_text(std::string_view text);
[[nodiscard]] std::string short_name(std::string_view name);
[[nodiscard]] std::vector<std::string> short_chain(const std::vector<std::string>& chain);

// For what is kept by the thousand: a text of 512 bytes, names of 128, four workers, no trace and
// no exception.
void make_brief(Error& error);

// All of an error, in place. The exception that it carries stays as it is.
void shorten(Error& error);

}  // namespace rehearsal
