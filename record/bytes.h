#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace rehearsal::record {

// Numbers and text as bytes, appended to a string: numbers seven bits a byte, the least first.
inline void put_number(std::string& out, uint64_t number) {
  while (number >= 0x80) {
    out += static_cast<char>(number | 0x80);
    number >>= 7;
  }
  out += static_cast<char>(number);
}

// Eight bytes, for what is no small number.
inline void put_word(std::string& out, uint64_t word) {
  out.append(reinterpret_cast<const char*>(&word), sizeof word);
}

inline void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

// Reads them back. Bytes that do not fit make it bad for good; the answers are then empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] uint64_t number() {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return fail();
      const auto byte = static_cast<uint8_t>(bytes_.front());
      bytes_.remove_prefix(1);
      number |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return number;
    }
    return fail();
  }
  [[nodiscard]] uint64_t word() {
    uint64_t word = 0;
    const std::string_view bytes = take(sizeof word);
    if (!bad_) std::memcpy(&word, bytes.data(), sizeof word);
    return word;
  }
  [[nodiscard]] std::string_view text() { return take(number()); }
  [[nodiscard]] std::string_view take(uint64_t size) {
    if (size > bytes_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  [[nodiscard]] size_t left() const { return bytes_.size(); }
  // Whether all was read, and all of it fitted.
  [[nodiscard]] bool finished() const { return !bad_ && bytes_.empty(); }
  [[nodiscard]] bool bad() const { return bad_; }

 private:
  uint64_t fail() {
    bad_ = true;
    bytes_ = {};
    return 0;
  }

  std::string_view bytes_;
  bool bad_ = false;
};

}  // namespace rehearsal::record
