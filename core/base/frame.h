#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"

namespace rehearsal {

enum class FrameKind : uint8_t {
  message,    // sequenced: carries one message
  ack,        // only acknowledges
  heartbeat,  // only says that its sender lives
  fenced,     // tells the receiver that its incarnation is fenced by the sender
};

// The reader of a segment at its receiver.
enum class SegmentUse : uint8_t {
  host,
  device,  // a device copies it from the host's memory
};

// Raw payload bytes of one tensor: contiguous, 64-byte aligned where we allocated them. `owner`
// keeps `data` alive. A receiver may write to a segment it was given; a sender never does.
struct Segment {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  SegmentUse use = SegmentUse::host;
};

// One message on the wire: an envelope (core/wire) and, beside it, tensor segments.
struct FrameBody {
  std::string envelope;
  std::vector<Segment> segments;
  // So many bytes of all segments, one after another, may be read by now: it grows, for devices
  // copy the rest meanwhile. Null: all may be. On the strand.
  std::shared_ptr<const uint64_t> filled;
  [[nodiscard]] uint64_t bytes() const;
  // Whether all may be read.
  [[nodiscard]] bool is_filled() const;
};

// The session's part of a frame.
struct FrameHeader {
  FrameKind kind = FrameKind::message;
  Incarnation source;
  Incarnation destination;
  uint64_t sequence = 0;      // from 1 for kind message, else 0
  uint64_t acknowledged = 0;  // all of 1 … acknowledged were received
  // By lane: the last number that was received on it. All that were sent on the lane before it were
  // received, too, for a lane is FIFO; zero: none.
  std::array<uint64_t, 2> received{};
  bool on_large_lane = false;  // however small it is
};

// A frame as it goes through a Transport. The body is shared, never changed: the session keeps it
// until it is acknowledged. Frames that carry no message have an empty body.
struct Frame {
  FrameHeader header;
  std::shared_ptr<const FrameBody> body;
  [[nodiscard]] uint64_t bytes() const { return body ? body->bytes() : 0; }
};

// The two lanes of a link: frames up to kSmallFrameBytes, and larger ones with those that must not
// overtake them. Each is FIFO; they are unordered to each other.
enum class Lane : uint8_t { small, large };
inline constexpr uint64_t kSmallFrameBytes = 64 * 1024;
[[nodiscard]] inline Lane lane_of_bytes(uint64_t bytes) {
  return bytes <= kSmallFrameBytes ? Lane::small : Lane::large;
}
[[nodiscard]] inline Lane lane_of(const Frame& frame) {
  return frame.header.on_large_lane ? Lane::large : lane_of_bytes(frame.bytes());
}

// Limits that are checked before anything is allocated.
inline constexpr uint32_t kEnvelopeBytesMax = 64 * 1024 * 1024;
inline constexpr uint32_t kSegmentCountMax = 1 << 20;
inline constexpr uint64_t kSegmentBytesMax = uint64_t{1} << 40;

// The bytes of a frame, in order, little-endian: the fixed header (magic, version, kind, lane, ids,
// sequence, acknowledgement, envelope bytes, segment count, the last received of both lanes,
// checksum of all before it in the header, of the segment table and of the envelope), the segment
// table (bytes and use of each),
// the envelope, the segments, and, if there are segments, an 8-byte checksum of their bytes.
inline constexpr size_t kWireHeaderBytes = 72;
inline constexpr size_t kWireSegmentBytes = 16;
inline constexpr size_t kWireTrailerBytes = 8;

// The contents of the fixed header.
struct WireHeader {
  FrameHeader frame;
  uint32_t envelope_bytes = 0;
  uint32_t segment_count = 0;
  uint64_t checksum = 0;
};

// CHECKs that a frame may hold this body. No program's data decides it: what that makes too long is
// refused or shortened before (ValueWriter::finish, short_text.h).
void check_fits_frame(const FrameBody& body);

// Appends header, segment table and envelope: everything before the segments.
void append_wire_prefix(const Frame& frame, std::string& out);

// Checks magic, version, kind and limits. `bytes` are kWireHeaderBytes long.
[[nodiscard]] Result<WireHeader> parse_wire_header(std::span<const std::byte> bytes);

// Checks the checksum over header, segment table and envelope and reads the segments' lengths and
// uses (data is null). `prefix` is what append_wire_prefix wrote: its length is
// wire_prefix_bytes(header).
[[nodiscard]] Result<std::vector<Segment>> parse_wire_segments(const WireHeader& header,
                                                               std::span<const std::byte> prefix);
[[nodiscard]] inline uint64_t wire_prefix_bytes(const WireHeader& header) {
  return kWireHeaderBytes + uint64_t{header.segment_count} * kWireSegmentBytes +
         header.envelope_bytes;
}

// The trailer's checksum: folds in the segments one after another; start with zero.
[[nodiscard]] uint64_t fold_segment_checksum(uint64_t before, std::span<const std::byte> segment);

}  // namespace rehearsal
