#include "core/base/printable.h"

#include <cstdint>

namespace rehearsal {
namespace {

// The bytes of the character that the text begins with; 0: they are no UTF-8 (RFC 3629).
size_t character(std::string_view text, uint32_t& code) {
  const auto first = static_cast<uint8_t>(text.front());
  if (first < 0x80) {
    code = first;
    return 1;
  }
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  code = first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kLeast[bytes] || code > 0x10FFFF || surrogate ? 0 : bytes;
}

bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C ||
         (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

void append_escaped(char byte, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto number = static_cast<uint8_t>(byte);
  if (byte == '\n') {
    out += "\\n";
  } else if (byte == '\t') {
    out += "\\t";
  } else {
    out += "\\x";
    out += kDigits[number >> 4];
    out += kDigits[number & 15];
  }
}

void append(std::string& out, std::string_view text, std::string_view marks, bool keeps_lines) {
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t known = character(text, code);
    const size_t bytes = known == 0 ? 1 : known;
    const bool is_kept = known != 0 && (!is_control(code) || (keeps_lines && code == '\n'));
    if (is_kept && marks.find(text.substr(0, bytes)) != std::string_view::npos) out += '\\';
    if (is_kept)
      out += text.substr(0, bytes);
    else
      for (const char byte : text.substr(0, bytes)) append_escaped(byte, out);
    text.remove_prefix(bytes);
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append(out, text, "", /*keeps_lines=*/false);
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append(out, text, "", /*keeps_lines=*/true);
  return out;
}

void append_printable(std::string& line, std::string_view text, std::string_view marks) {
  append(line, text, marks, /*keeps_lines=*/false);
}

}  // namespace rehearsal
