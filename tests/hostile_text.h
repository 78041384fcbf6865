#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace rehearsal {

// A peer may put this into any text: a line of its own, a cleared screen, a title, a carriage
// return that writes over the line, the one-byte form of ESC [, bytes that are no UTF-8, a line
// that runs backwards.
inline const std::string kHostileText =
    std::string(
        "bad\n2026-01-01T00:00:00.000000Z level=error worker=a event=lie\x1b[2J\x1b]0;x\x07") +
    "\rover\xc2\x9b"
    "31m\xff\xc0\x80\xe2\x80\xae\xd8\x9c"
    "end\x7f<script>";

// As a person may be shown it.
inline constexpr std::string_view kHostileTextShown =
    R"(bad\n2026-01-01T00:00:00.000000Z level=error worker=a event=lie\x1b[2J\x1b]0;x\x07)"
    R"(\x0dover\xc2\x9b31m\xff\xc0\x80\xe2\x80\xae\xd8\x9cend\x7f<script>)";

// No byte of `text` but the ends of its lines does anything to a terminal.
inline testing::AssertionResult is_plain(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::string_view rest = std::string_view(text).substr(i);
    const bool is_control = (byte < 0x20 && byte != '\n') || byte == 0x7f;
    const bool is_wrong = byte == 0xff || byte == 0xc0 || rest.starts_with("\xc2\x9b") ||
                          rest.starts_with("\xe2\x80\xae") || rest.starts_with("\xd8\x9c");
    if (is_control || is_wrong)
      return testing::AssertionFailure() << "byte " << static_cast<int>(byte) << " at " << i;
  }
  return testing::AssertionSuccess();
}

}  // namespace rehearsal
