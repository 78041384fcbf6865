#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace rehearsal::record {

// The bytes of a record's file, little-endian: a Preface; at kTextOffset the text of the header;
// from `ring_offset` on the ring. The ring holds items one behind the other, each an ItemFrame and
// then its bytes; what does not fit before the ring's end goes on at its beginning. `written` only
// grows: beyond `ring_bytes` the oldest bytes have been overwritten.
struct Preface {
  char magic[16];
  uint32_t version;
  uint32_t text_bytes;
  uint64_t text_checksum;
  uint64_t ring_offset;
  uint64_t ring_bytes;
  uint64_t written;  // bytes of complete items so far
};
struct ItemFrame {
  uint32_t bytes;
  uint32_t checksum;
};
inline constexpr char kMagic[16] = {'r', 'e', 'h', 'e', 'a', 'r', 's', 'a',
                                    'l', ' ', 'r', 'e', 'c', 'o', 'r', 'd'};
inline constexpr uint32_t kVersion = 5;
inline constexpr uint64_t kTextOffset = 64;
inline constexpr uint64_t kRingBytesMin = 4096;

// Covers an item's bytes and its place, so that no old one is taken for a new one.
[[nodiscard]] uint32_t checksum_of(std::string_view bytes, uint64_t place);

// A file that is written as memory: what was appended is there however the process ends, unless the
// machine does. The whole file is allocated from the start, so that a full disk is noticed then and
// not as a fault in the middle of a run.
class RingFile {
 public:
  // Replaces a file of that name. The error (bad_arguments) is one line.
  [[nodiscard]] static Result<std::unique_ptr<RingFile>> create(const std::string& path,
                                                                const std::string& text,
                                                                uint64_t ring_bytes);
  ~RingFile();
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;

  // Adds an item: the bytes of all parts, one behind the other.
  void append(std::span<const std::string_view> parts);

  [[nodiscard]] uint64_t written() const { return written_; }
  [[nodiscard]] uint64_t capacity() const { return ring_bytes_; }

 private:
  RingFile(std::byte* memory, uint64_t ring_offset, uint64_t ring_bytes);
  void copy_in(uint64_t place, std::string_view bytes);

  std::byte* const memory_;
  const uint64_t ring_offset_;
  const uint64_t ring_bytes_;
  uint64_t written_ = 0;
};

}  // namespace rehearsal::record
