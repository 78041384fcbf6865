#include "record/record_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "core/base/hash.h"
#include "record/ring_file.h"

namespace rehearsal::record {
namespace {

constexpr size_t kFirstPieceBytes = size_t{1} << 16;
constexpr size_t kPieceBytesMax = size_t{1} << 24;

Error wrong(const std::string& path, const std::string& text) {
  return {.kind = ErrorKind::bad_arguments, .text = path + ": " + text};
}

std::string damaged_at(uint64_t place) {
  return "is damaged: its bytes from " + std::to_string(place) + " on are not what was written";
}

// The Preface, if the file holds all that it announces.
Result<Preface> preface_of(const std::string& path, std::string_view bytes) {
  Preface preface{};
  std::memcpy(&preface, bytes.data(), std::min(bytes.size(), sizeof preface));
  if (std::memcmp(preface.magic, kMagic, sizeof kMagic) != 0)
    return wrong(path, "is no record of a worker");
  if (bytes.size() < kTextOffset) return wrong(path, "is cut short: it has no header");
  if (preface.version != kVersion)
    return wrong(path, "is a record of version " + std::to_string(preface.version) +
                           "; this program reads version " + std::to_string(kVersion));
  const uint64_t size = bytes.size();
  if (preface.ring_offset > size || preface.ring_bytes > size - preface.ring_offset)
    return wrong(path, "is cut short: it has " + std::to_string(size) + " bytes of " +
                           std::to_string(preface.ring_offset + preface.ring_bytes));
  if (preface.ring_offset < kTextOffset || preface.text_bytes > preface.ring_offset - kTextOffset ||
      preface.ring_bytes == 0)
    return wrong(path, damaged_at(0));
  return preface;
}

// Up to `written` bytes of items; what is wrong with them, if something is.
std::optional<std::string> read_items(std::string_view ring, uint64_t ring_offset,
                                      std::vector<Item>& items) {
  uint64_t place = 0;
  while (place < ring.size()) {
    ItemFrame frame{};
    const std::string_view rest = ring.substr(place);
    if (rest.size() < sizeof frame) return damaged_at(ring_offset + place);
    std::memcpy(&frame, rest.data(), sizeof frame);
    if (frame.bytes > rest.size() - sizeof frame) return damaged_at(ring_offset + place);
    const std::string_view bytes = rest.substr(sizeof frame, frame.bytes);
    if (checksum_of(bytes, place + sizeof frame) != frame.checksum)
      return damaged_at(ring_offset + place);
    std::optional<Item> item = item_of(bytes);
    if (!item) return damaged_at(ring_offset + place);
    items.push_back(std::move(*item));
    place += sizeof frame + bytes.size();
  }
  return std::nullopt;
}

// In pieces that grow with it: a record may have hundreds of megabytes. Returns 0, or errno.
int read_whole(const std::string& path, std::string& bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  size_t read = 0;
  while (file) {
    const size_t piece = std::clamp(read, kFirstPieceBytes, kPieceBytesMax);
    bytes.resize(read + piece);
    file.read(bytes.data() + read, static_cast<std::streamsize>(piece));
    read += static_cast<size_t>(file.gcount());
  }
  bytes.resize(read);
  if (file.eof()) return 0;
  return errno != 0 ? errno : EIO;
}

}  // namespace

bool looks_like_record(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof kMagic] = {};
  return file.read(magic, sizeof magic) && std::memcmp(magic, kMagic, sizeof magic) == 0;
}

Result<std::unique_ptr<Record>> read_record(const std::string& path) {
  auto record = std::make_unique<Record>();
  if (const int error = read_whole(path, record->bytes); error != 0)
    return wrong(path, "cannot be read: " + std::generic_category().message(error));
  const std::string_view bytes = record->bytes;
  const Result<Preface> preface = preface_of(path, bytes);
  if (!preface.ok()) return Result<Preface>(preface).error();
  const Preface& known = preface.value();
  const std::string text(bytes.substr(kTextOffset, known.text_bytes));
  std::optional<RecordHeader> header = header_of(text);
  if (hash_bytes(text.data(), text.size()) != known.text_checksum || !header)
    return wrong(path, damaged_at(kTextOffset));
  record->header = std::move(*header);
  if (known.written > known.ring_bytes)
    return wrong(path, "has lost its beginning: of " + std::to_string(known.written) +
                           " bytes it holds the last " + std::to_string(known.ring_bytes) +
                           "; record again with a larger --record-size");
  if (const auto damage = read_items(bytes.substr(known.ring_offset, known.written),
                                     known.ring_offset, record->items))
    return wrong(path, *damage);
  return record;
}

}  // namespace rehearsal::record
