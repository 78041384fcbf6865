#include "record/record_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/hash.h"
#include "core/base/regular_file.h"
#include "record/ring_file.h"

namespace rehearsal::record {
namespace {

// The largest ring, and a header.
constexpr uint64_t kFileBytesMax = (uint64_t{1} << 32) + (uint64_t{1} << 26);

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

// Whether a transport of a group of so many workers can have brought it: a link, and what comes by
// it, is to one of them. (A node itself overlooks who comes or refuses by another number.)
bool can_have_come(const Item& item, size_t workers) {
  if (const auto* frame = std::get_if<FrameReceived>(&item)) return frame->peer.value < workers;
  if (const auto* lost = std::get_if<PeerLost>(&item)) return lost->peer.value < workers;
  const auto* drained = std::get_if<Drained>(&item);
  return drained == nullptr || drained->peer.value < workers;
}

// Up to `written` bytes of items, of a node in a group of so many workers; what is wrong with them,
// if something is.
std::optional<std::string> read_items(std::string_view ring, uint64_t ring_offset, size_t workers,
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
    if (!item || !can_have_come(*item, workers)) return damaged_at(ring_offset + place);
    items.push_back(std::move(*item));
    place += sizeof frame + bytes.size();
  }
  return std::nullopt;
}

}  // namespace

bool looks_like_record(const std::string& path) {
  const Result<OpenFile> file = open_regular(path);
  char magic[sizeof kMagic] = {};
  return file.ok() && std::fread(magic, sizeof magic, 1, file.value().get()) == 1 &&
         std::memcmp(magic, kMagic, sizeof magic) == 0;
}

Result<std::unique_ptr<Record>> read_record(const std::string& path) {
  auto record = std::make_unique<Record>();
  Result<std::string> read = read_regular(path, kFileBytesMax);
  if (!read.ok()) return wrong(path, "cannot be read: " + read.error().text);
  record->bytes = std::move(read).value();
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
  if (const auto damage =
          read_items(bytes.substr(known.ring_offset, known.written), known.ring_offset,
                     record->header.node.names.size(), record->items))
    return wrong(path, *damage);
  return record;
}

}  // namespace rehearsal::record
