#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/base/frame.h"
#include "core/base/hash.h"

namespace rehearsal {
namespace {

Segment segment_of(const std::string& text, SegmentUse use = SegmentUse::host) {
  auto bytes = std::make_shared<std::string>(text);
  auto* data = reinterpret_cast<std::byte*>(bytes->data());
  return {.owner = bytes, .data = data, .bytes = text.size(), .use = use};
}

Frame message_frame(const std::string& envelope, std::vector<Segment> segments = {}) {
  auto body = std::make_shared<FrameBody>();
  body->envelope = envelope;
  body->segments = std::move(segments);
  return {.header = {.kind = FrameKind::message,
                     .source = {0x1122334455667788},
                     .destination = {0x99aabbccddeeff00},
                     .sequence = 42,
                     .acknowledged = 41,
                     .received = {40, 41}},
          .body = body};
}

Frame bare_frame(FrameKind kind) {
  return {.header = {.kind = kind, .source = {5}, .destination = {6}, .acknowledged = 7},
          .body = nullptr};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The facts that a receiver learns from the bytes before the segments; an error if any check fails.
struct Received {
  WireHeader header;
  std::vector<Segment> segments;
  std::string envelope;
};
Result<Received> receive(const std::string& bytes) {
  if (bytes.size() < kWireHeaderBytes) return Error{.text = "short"};
  Result<WireHeader> header = parse_wire_header(bytes_of(bytes).first(kWireHeaderBytes));
  if (!header.ok()) return header.error();
  Result<std::vector<Segment>> segments = parse_wire_segments(header.value(), bytes_of(bytes));
  if (!segments.ok()) return segments.error();
  const size_t at = bytes.size() - header.value().envelope_bytes;
  return Received{header.value(), segments.value(), bytes.substr(at)};
}

void expect_equal(const Received& received, const Frame& frame) {
  const FrameHeader& header = received.header.frame;
  EXPECT_EQ(header.kind, frame.header.kind);
  EXPECT_EQ(header.source, frame.header.source);
  EXPECT_EQ(header.destination, frame.header.destination);
  EXPECT_EQ(header.sequence, frame.header.sequence);
  EXPECT_EQ(header.acknowledged, frame.header.acknowledged);
  EXPECT_EQ(header.received, frame.header.received);
  const FrameBody empty;
  const FrameBody& body = frame.body ? *frame.body : empty;
  EXPECT_EQ(received.envelope, body.envelope);
  ASSERT_EQ(received.segments.size(), body.segments.size());
  for (size_t i = 0; i < body.segments.size(); ++i) {
    EXPECT_EQ(received.segments[i].bytes, body.segments[i].bytes);
    EXPECT_EQ(received.segments[i].use, body.segments[i].use);
    EXPECT_EQ(received.segments[i].data, nullptr);
  }
}

std::vector<Frame> frames() {
  return {message_frame("envelope"),
          message_frame("", {segment_of("x")}),
          message_frame("two",
                        {segment_of("abc", SegmentUse::device), segment_of(std::string(999, 'y'))}),
          bare_frame(FrameKind::ack),
          bare_frame(FrameKind::heartbeat),
          bare_frame(FrameKind::fenced)};
}

TEST(FrameWire, AFrameComesBackAsItWas) {
  // Write and parse each kind of frame.
  for (const Frame& frame : frames()) {
    std::string bytes;
    append_wire_prefix(frame, bytes);
    Result<Received> received = receive(bytes);
    ASSERT_TRUE(received.ok()) << received.error().text;
    EXPECT_EQ(bytes.size(), wire_prefix_bytes(received.value().header));
    expect_equal(received.value(), frame);
  }
}

TEST(FrameWire, FramesAreAppendedOneAfterAnother) {
  // A checksum covers its own frame only, wherever it stands in the buffer.
  std::string bytes;
  append_wire_prefix(frames()[2], bytes);
  const size_t first = bytes.size();
  append_wire_prefix(frames()[0], bytes);
  EXPECT_TRUE(receive(bytes.substr(0, first)).ok());
  EXPECT_TRUE(receive(bytes.substr(first)).ok());
}

TEST(FrameWire, EveryTruncationIsAnError) {
  for (const Frame& frame : frames()) {
    std::string bytes;
    append_wire_prefix(frame, bytes);
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(receive(bytes.substr(0, size)).ok()) << size;
    EXPECT_FALSE(receive(bytes + '\0').ok());
  }
}

TEST(FrameWire, EveryChangedBitIsAnError) {
  // Flip each bit of each frame: magic, version, kind, limits and the checksum cover all of them.
  for (const Frame& frame : frames()) {
    std::string bytes;
    append_wire_prefix(frame, bytes);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      Result<Received> received = receive(changed);
      ASSERT_FALSE(received.ok()) << bit;
      EXPECT_EQ(received.error().kind, ErrorKind::protocol);
    }
  }
}

// A header as its fields, with a checksum that fits, so that only the other checks can refuse it.
std::string header_with(size_t at, auto value, const std::string& rest = {}) {
  std::string bytes;
  append_wire_prefix(message_frame(""), bytes);
  std::memcpy(bytes.data() + at, &value, sizeof value);
  bytes += rest;
  const uint64_t header = hash_bytes(bytes.data(), kWireHeaderBytes - 8);
  const uint64_t checksum =
      hash_bytes(bytes.data() + kWireHeaderBytes, bytes.size() - kWireHeaderBytes, header);
  std::memcpy(bytes.data() + kWireHeaderBytes - 8, &checksum, sizeof checksum);
  return bytes;
}

TEST(FrameWire, LimitsAreCheckedWhateverTheChecksumSays) {
  // Each field out of its limits, under a checksum that fits: refused by the header alone.
  constexpr size_t kKind = 6;
  constexpr size_t kLane = 7;
  constexpr size_t kSequence = 24;
  constexpr size_t kEnvelopeBytes = 40;
  constexpr size_t kSegmentCount = 44;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {header_with(0, uint32_t{0}), "magic"},
      {header_with(4, uint16_t{4}), "version 4"},
      {header_with(4, uint16_t{6}), "version 6"},
      {header_with(kKind, uint8_t{4}), "unknown kind"},
      {header_with(kLane, uint8_t{2}), "unknown lane"},
      {header_with(kEnvelopeBytes, uint32_t{kEnvelopeBytesMax + 1}), "envelope too large"},
      {header_with(kSegmentCount, uint32_t{kSegmentCountMax + 1}), "too many segments"},
      {header_with(kSequence, uint64_t{0}), "sequence"},
      {header_with(kKind, uint8_t{1}), "sequence"}};
  for (const auto& [bytes, why] : cases) {
    Result<WireHeader> header = parse_wire_header(bytes_of(bytes).first(kWireHeaderBytes));
    ASSERT_FALSE(header.ok()) << why;
    EXPECT_NE(header.error().text.find(why), std::string::npos) << header.error().text;
  }
}

TEST(FrameWire, ASegmentLongerThanTheLimitIsRefused) {
  std::string entry(kWireSegmentBytes, '\0');
  const uint64_t bytes = kSegmentBytesMax + 1;
  std::memcpy(entry.data(), &bytes, sizeof bytes);
  const Result<Received> received = receive(header_with(44, uint32_t{1}, entry));
  ASSERT_FALSE(received.ok());
  EXPECT_NE(received.error().text.find("segment too large"), std::string::npos);
}

TEST(FrameWire, AnAcknowledgementCarriesNoBody) {
  Frame frame = message_frame("envelope");
  frame.header.kind = FrameKind::ack;
  frame.header.sequence = 0;
  std::string bytes;
  append_wire_prefix(frame, bytes);
  const Result<Received> received = receive(bytes);
  ASSERT_FALSE(received.ok());
  EXPECT_NE(received.error().text.find("a body where none belongs"), std::string::npos);
}

TEST(FrameWire, RandomBytesAreRefused) {
  // 20,000 drawn headers, half of them with the right magic and version.
  for (uint64_t i = 0; i < 20000; ++i) {
    std::string bytes(kWireHeaderBytes, '\0');
    for (size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<char>(mix(mix(3, i), at));
    if (i % 2 == 0) {
      std::string good;
      append_wire_prefix(message_frame(""), good);
      bytes.replace(0, 7, good, 0, 7);
    }
    EXPECT_FALSE(receive(bytes).ok());
  }
}

TEST(FrameWire, ASegmentForAnUnknownUseIsRefused) {
  std::string bytes;
  append_wire_prefix(message_frame("", {segment_of("x", static_cast<SegmentUse>(2))}), bytes);
  const auto received = receive(bytes);
  ASSERT_FALSE(received.ok());
  EXPECT_EQ(received.error().text, "malformed frame: unknown use");
}

TEST(FrameWire, TheTrailerDependsOnEverySegment) {
  const std::string a = "one";
  const std::string b = "two";
  const uint64_t both = fold_segment_checksum(fold_segment_checksum(0, bytes_of(a)), bytes_of(b));
  EXPECT_EQ(both, fold_segment_checksum(fold_segment_checksum(0, bytes_of(a)), bytes_of(b)));
  EXPECT_NE(both, fold_segment_checksum(fold_segment_checksum(0, bytes_of(b)), bytes_of(a)));
  EXPECT_NE(both, fold_segment_checksum(0, bytes_of(b)));
}

TEST(FrameWire, AFramesLaneIsThatOfItsSize) {
  // Exactly 64 KiB is small, one byte more is large; the segments count.
  const std::string most(kSmallFrameBytes - 3, 's');
  EXPECT_EQ(lane_of(bare_frame(FrameKind::ack)), Lane::small);
  EXPECT_EQ(lane_of(message_frame("env", {segment_of(most)})), Lane::small);
  EXPECT_EQ(lane_of(message_frame("envy", {segment_of(most)})), Lane::large);
}

}  // namespace
}  // namespace rehearsal
