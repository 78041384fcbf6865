#include "net_fake/corruption.h"

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::net_fake {
namespace {

Error rejected(std::string text) {
  return {.kind = ErrorKind::protocol, .text = "malformed frame: " + std::move(text)};
}

// Prefix, segments and trailer, as they leave a socket.
std::string wire_bytes_of(const Frame& frame) {
  std::string wire;
  append_wire_prefix(frame, wire);
  if (frame.body == nullptr || frame.body->segments.empty()) return wire;
  uint64_t sum = 0;
  for (const Segment& segment : frame.body->segments) {
    wire.append(reinterpret_cast<const char*>(segment.data), segment.bytes);
    sum = fold_segment_checksum(sum, std::span(segment.data, segment.bytes));
  }
  wire.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return wire;
}

// Reads what `wire` holds as a receiver does, which knows no length but those that it reads.
Status check_wire(std::span<const std::byte> wire) {
  const auto header = parse_wire_header(wire.first(kWireHeaderBytes));
  if (!header.ok()) return header.error();
  const uint64_t prefix_bytes = wire_prefix_bytes(header.value());
  if (prefix_bytes > wire.size()) return rejected("it ends too early");
  const auto segments = parse_wire_segments(header.value(), wire.first(prefix_bytes));
  if (!segments.ok()) return segments.error();
  std::span<const std::byte> rest = wire.subspan(prefix_bytes);
  if (segments.value().empty()) return Unit{};
  uint64_t sum = 0;
  for (const Segment& segment : segments.value()) {
    if (segment.bytes > rest.size()) return rejected("it ends too early");
    sum = fold_segment_checksum(sum, rest.first(segment.bytes));
    rest = rest.subspan(segment.bytes);
  }
  uint64_t trailer = 0;
  REHEARSAL_CHECK(rest.size() == sizeof trailer, rest.size());
  std::memcpy(&trailer, rest.data(), sizeof trailer);
  if (trailer != sum) return rejected("bad checksum");
  return Unit{};
}

}  // namespace

uint64_t wire_bits(const Frame& frame) {
  uint64_t bytes = kWireHeaderBytes + frame.bytes();
  if (frame.body != nullptr && !frame.body->segments.empty())
    bytes += frame.body->segments.size() * kWireSegmentBytes + kWireTrailerBytes;
  return bytes * 8;
}

Status check_with_flipped_bit(const Frame& frame, uint64_t bit) {
  REHEARSAL_CHECK(bit < wire_bits(frame), bit);
  std::string wire = wire_bytes_of(frame);
  wire[bit / 8] = static_cast<char>(wire[bit / 8] ^ (1 << (bit % 8)));
  return check_wire(std::as_bytes(std::span(wire)));
}

}  // namespace rehearsal::net_fake
