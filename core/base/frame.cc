#include "core/base/frame.h"

#include <bit>
#include <cstring>

#include "core/base/check.h"
#include "core/base/hash.h"

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

namespace rehearsal {
namespace {

constexpr uint32_t kMagic = 0x31534852;  // "RHS1"
constexpr uint16_t kVersion = 5;         // of the frames and of the messages in them

// The fixed header as bytes. The checksum comes last: it covers all that precedes it.
struct HeaderBytes {
  uint32_t magic;
  uint16_t version;
  uint8_t kind;
  uint8_t on_large_lane;
  uint64_t source;
  uint64_t destination;
  uint64_t sequence;
  uint64_t acknowledged;
  uint32_t envelope_bytes;
  uint32_t segment_count;
  uint64_t received[2];
  uint64_t checksum;
};
static_assert(sizeof(HeaderBytes) == kWireHeaderBytes);
static_assert(std::has_unique_object_representations_v<HeaderBytes>);

struct SegmentBytes {
  uint64_t bytes;
  uint8_t use;
  uint8_t reserved[7];
};
static_assert(sizeof(SegmentBytes) == kWireSegmentBytes);

constexpr size_t kCheckedHeaderBytes = offsetof(HeaderBytes, checksum);

uint64_t prefix_checksum(const char* prefix, uint64_t bytes) {
  const uint64_t header = hash_bytes(prefix, kCheckedHeaderBytes);
  return hash_bytes(prefix + kWireHeaderBytes, bytes - kWireHeaderBytes, header);
}

Error malformed(std::string text) {
  return {.kind = ErrorKind::protocol, .text = "malformed frame: " + std::move(text)};
}

}  // namespace

uint64_t FrameBody::bytes() const {
  uint64_t total = envelope.size();
  for (const Segment& segment : segments) total += segment.bytes;
  return total;
}

bool FrameBody::is_filled() const {
  return filled == nullptr || *filled >= bytes() - envelope.size();
}

void check_fits_frame(const FrameBody& body) {
  REHEARSAL_CHECK(body.envelope.size() <= kEnvelopeBytesMax, body.envelope.size());
  REHEARSAL_CHECK(body.segments.size() <= kSegmentCountMax, body.segments.size());
  REHEARSAL_CHECK(body.bytes() <= kSegmentBytesMax, body.bytes());
}

void append_wire_prefix(const Frame& frame, std::string& out) {
  const size_t start = out.size();
  HeaderBytes header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.kind = static_cast<uint8_t>(frame.header.kind);
  header.on_large_lane = frame.header.on_large_lane ? 1 : 0;
  header.source = frame.header.source.value;
  header.destination = frame.header.destination.value;
  header.sequence = frame.header.sequence;
  header.acknowledged = frame.header.acknowledged;
  for (size_t lane = 0; lane < 2; ++lane) header.received[lane] = frame.header.received[lane];
  if (frame.body) {
    check_fits_frame(*frame.body);
    header.envelope_bytes = static_cast<uint32_t>(frame.body->envelope.size());
    header.segment_count = static_cast<uint32_t>(frame.body->segments.size());
  }
  out.append(reinterpret_cast<const char*>(&header), sizeof header);
  if (frame.body) {
    for (const Segment& segment : frame.body->segments) {
      const SegmentBytes entry{segment.bytes, static_cast<uint8_t>(segment.use), {}};
      out.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    }
    out += frame.body->envelope;
  }
  const uint64_t checksum = prefix_checksum(out.data() + start, out.size() - start);
  std::memcpy(out.data() + start + kCheckedHeaderBytes, &checksum, sizeof checksum);
}

Result<WireHeader> parse_wire_header(std::span<const std::byte> bytes) {
  if (bytes.size() != kWireHeaderBytes) return malformed("short header");
  HeaderBytes header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return malformed("not a frame (wrong magic)");
  if (header.version != kVersion)
    return malformed("version " + std::to_string(header.version) + " is not spoken here");
  if (header.kind > static_cast<uint8_t>(FrameKind::fenced)) return malformed("unknown kind");
  if (header.on_large_lane > 1) return malformed("unknown lane");
  if (header.envelope_bytes > kEnvelopeBytesMax) return malformed("envelope too large");
  if (header.segment_count > kSegmentCountMax) return malformed("too many segments");
  WireHeader parsed;
  parsed.frame = {static_cast<FrameKind>(header.kind),
                  Incarnation{header.source},
                  Incarnation{header.destination},
                  header.sequence,
                  header.acknowledged,
                  {header.received[0], header.received[1]},
                  header.on_large_lane != 0};
  parsed.envelope_bytes = header.envelope_bytes;
  parsed.segment_count = header.segment_count;
  parsed.checksum = header.checksum;
  const bool message = parsed.frame.kind == FrameKind::message;
  if (message != (parsed.frame.sequence != 0)) return malformed("sequence does not fit the kind");
  if (!message && (parsed.envelope_bytes != 0 || parsed.segment_count != 0))
    return malformed("a body where none belongs");
  return parsed;
}

Result<std::vector<Segment>> parse_wire_segments(const WireHeader& header,
                                                 std::span<const std::byte> prefix) {
  if (prefix.size() != wire_prefix_bytes(header)) return malformed("short prefix");
  const char* bytes = reinterpret_cast<const char*>(prefix.data());
  if (prefix_checksum(bytes, prefix.size()) != header.checksum) return malformed("bad checksum");
  std::vector<Segment> segments(header.segment_count);
  for (uint32_t i = 0; i < header.segment_count; ++i) {
    SegmentBytes entry;
    std::memcpy(&entry, bytes + kWireHeaderBytes + i * kWireSegmentBytes, sizeof entry);
    if (entry.bytes > kSegmentBytesMax) return malformed("segment too large");
    if (entry.use > static_cast<uint8_t>(SegmentUse::device)) return malformed("unknown use");
    constexpr uint8_t kNone[sizeof entry.reserved] = {};
    if (std::memcmp(entry.reserved, kNone, sizeof kNone) != 0) return malformed("reserved bytes");
    segments[i].bytes = entry.bytes;
    segments[i].use = static_cast<SegmentUse>(entry.use);
  }
  return segments;
}

uint64_t fold_segment_checksum(uint64_t before, std::span<const std::byte> segment) {
  return hash_bytes(segment.data(), segment.size(), before);
}

}  // namespace rehearsal
