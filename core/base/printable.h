#pragma once

#include <string>
#include <string_view>

namespace rehearsal {

// Text that others gave, as one line for a person: a line break is written \n, a tab \t, another
// control character, also one of Unicode's C1 or of its line and direction marks, and each byte
// that is no UTF-8 \xNN. A terminal obeys nothing in it, and a log keeps its lines. Other text
// stays as it is, backslashes included.
[[nodiscard]] std::string printable(std::string_view text);

// The same of a text that may have several lines.
[[nodiscard]] std::string printable_lines(std::string_view text);

// Appends it as one line, with a \ before each of `marks`, which are ASCII: for a line in which
// they mean something.
void append_printable(std::string& line, std::string_view text, std::string_view marks);

}  // namespace rehearsal
