#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/base/hash.h"
#include "real_net/tcp/frame_parser.h"
#include "real_net/tcp/frame_writer.h"
#include "real_net/tcp/slab_pool.h"
#include "tests/conformance/transport_filling_suite.h"
#include "tests/conformance/transport_suite.h"

// FrameWriter and FrameParser: the bytes of one lane, without a network.
namespace rehearsal::real {
namespace {

using conformance::frame_with;
using conformance::same_bytes;
using conformance::small_frame;

// The bytes that leave at once, at most `piece`.
std::string taken_at_once(FrameWriter& writer, uint64_t piece) {
  std::string bytes;
  std::array<iovec, 7> room;
  const size_t used = writer.gather(room, piece);
  for (size_t i = 0; i < used; ++i)
    bytes.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
  writer.consume(bytes.size());
  return bytes;
}

// All that the writer holds, taken in pieces of at most `piece` bytes.
std::string drain(FrameWriter& writer, uint64_t piece = UINT64_MAX) {
  std::string bytes;
  while (!writer.empty()) bytes += taken_at_once(writer, piece);
  return bytes;
}

// Gives `bytes` to the parser, at most `piece` at once.
Status feed(FrameParser& parser, std::string_view bytes, std::vector<Frame>& frames,
            size_t piece = SIZE_MAX) {
  while (!bytes.empty() && !parser.closing()) {
    uint64_t given = 0;
    for (const iovec& stretch : parser.room(std::min(piece, bytes.size()))) {
      const size_t count = std::min(stretch.iov_len, bytes.size());
      std::memcpy(stretch.iov_base, bytes.data(), count);
      bytes.remove_prefix(count);
      given += count;
    }
    EXPECT_GT(given, 0u);
    if (Status parsed = parser.commit(given, frames); !parsed.ok()) return parsed;
  }
  return Unit{};
}

void expect_equal(const Frame& sent, const Frame& got) {
  EXPECT_EQ(sent.header.kind, got.header.kind);
  EXPECT_EQ(sent.header.sequence, got.header.sequence);
  EXPECT_EQ(sent.header.acknowledged, got.header.acknowledged);
  ASSERT_EQ(sent.body != nullptr, got.body != nullptr);
  if (!sent.body) return;
  EXPECT_EQ(sent.body->envelope, got.body->envelope);
  ASSERT_EQ(sent.body->segments.size(), got.body->segments.size());
  for (size_t i = 0; i < sent.body->segments.size(); ++i)
    EXPECT_TRUE(same_bytes(sent.body->segments[i], got.body->segments[i])) << i;
}

std::vector<Frame> assorted_frames() {
  std::vector<Frame> frames;
  frames.push_back(small_frame(1, ""));
  frames.push_back({.header = {.kind = FrameKind::heartbeat, .source = {1}, .destination = {2}}});
  frames.push_back(frame_with(2, {0}));
  frames.push_back(frame_with(3, {1, 0, 63, 64, 65, 0}));
  frames.push_back(frame_with(4, {16 * 1024, 16 * 1024 + 1, 0, 3}));
  frames.push_back(frame_with(5, {200'000, 300'000}));
  frames.push_back(small_frame(6, std::string(200'000, 'e')));
  frames.push_back(frame_with(7, std::vector<uint64_t>(6'000, 9)));
  frames.push_back(small_frame(8, "last"));
  return frames;
}

// Goal: of a body that is not filled leaves what is, and the checksum is of what it is then.
TEST(FrameStream, OfABodyThatIsNotFilledLeavesWhatIs) {
  for (const uint64_t step : {1'009, 20'000, 70'000}) {
    SlabPool pool;
    FrameParser parser(pool, Lane::large);
    FrameWriter writer;
    conformance::FillingFrame sent(1, {30, 40'000, 0, 100'000});
    writer.append(sent.frame());
    writer.append(small_frame(2));
    std::string bytes;
    for (uint64_t filled = 0; !writer.empty(); filled += step) {
      sent.fill_to(filled);
      while (writer.can_leave()) bytes += taken_at_once(writer, 10'000);
      if (filled >= 140'030) continue;
      EXPECT_LE(bytes.size(), kWireHeaderBytes + 4 * kWireSegmentBytes + 100 + filled);
      EXPECT_GE(bytes.size(), filled);
    }
    std::vector<Frame> arrived;
    ASSERT_TRUE(feed(parser, bytes, arrived).ok());
    ASSERT_EQ(arrived.size(), 2u);
    expect_equal(sent.whole(), arrived[0]);
  }
}

TEST(FrameStream, FramesSurviveEveryCuttingOfTheStream) {
  // Goal: pieces of any size, at both ends. Method: sizes around every border.
  const std::vector<Frame> sent = assorted_frames();
  std::string reference;
  for (const size_t piece : {1u, 7u, 71u, 72u, 73u, 1'000u, 65'536u, 262'144u, 10'000'000u}) {
    FrameWriter writer;
    for (const Frame& frame : sent) writer.append(frame);
    const std::string bytes = drain(writer, std::max<size_t>(piece, 64));
    if (reference.empty()) reference = bytes;
    ASSERT_EQ(bytes, reference);
    SlabPool pool;
    FrameParser parser(pool, Lane::large);
    std::vector<Frame> got;
    const Status parsed = feed(parser, bytes, got, piece);
    ASSERT_TRUE(parsed.ok()) << parsed.error().text;
    EXPECT_TRUE(parser.between_frames());
    ASSERT_EQ(got.size(), sent.size());
    for (size_t i = 0; i < sent.size(); ++i) expect_equal(sent[i], got[i]);
  }
}

TEST(FrameStream, PartialWritesOfManySizesKeepTheChecksumRight) {
  const std::vector<Frame> sent = assorted_frames();
  FrameWriter writer;
  for (const Frame& frame : sent) writer.append(frame);
  std::string bytes;
  std::array<iovec, 5> room;
  for (uint64_t round = 0; !writer.empty(); ++round) {
    const uint64_t offered_max = 1 + mix(1, round) % 300'000;
    const size_t used = writer.gather(room, offered_max);
    uint64_t offered = 0;
    for (size_t i = 0; i < used; ++i) offered += room[i].iov_len;
    const uint64_t taken = mix(2, round) % (offered + 1);
    uint64_t left = taken;
    for (size_t i = 0; i < used && left > 0; ++i) {
      const size_t count = std::min<uint64_t>(room[i].iov_len, left);
      bytes.append(static_cast<const char*>(room[i].iov_base), count);
      left -= count;
    }
    writer.consume(taken);
  }
  SlabPool pool;
  FrameParser parser(pool, Lane::large);
  std::vector<Frame> got;
  ASSERT_TRUE(feed(parser, bytes, got).ok());
  ASSERT_EQ(got.size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) expect_equal(sent[i], got[i]);
}

TEST(FrameStream, ABodyIsKeptOnlyUntilItHasLeft) {
  const Frame frame = frame_with(1, {100'000});
  FrameWriter writer;
  writer.append(frame);
  EXPECT_GT(frame.body.use_count(), 1);
  drain(writer, 10'000);
  EXPECT_EQ(frame.body.use_count(), 1);
  writer.append(frame);
  writer.clear();
  EXPECT_EQ(frame.body.use_count(), 1);
  EXPECT_EQ(writer.queued_bytes(), 0u);
}

TEST(FrameStream, AChangedByteAnywhereIsAnErrorOrStillWaitsForMore) {
  // Goal: nothing is delivered that was not sent. Method: every byte of three frames is changed.
  FrameWriter writer;
  writer.append(small_frame(1, "envelope"));
  writer.append(frame_with(2, {20}));
  writer.append(frame_with(3, {17'000}));
  const std::string bytes = drain(writer);
  const size_t first_bytes = kWireHeaderBytes + 8;
  size_t noticed = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    SlabPool pool;
    FrameParser parser(pool, Lane::small);
    std::vector<Frame> got;
    const Status parsed = feed(parser, changed, got);
    EXPECT_LT(got.size(), 3u) << at;
    EXPECT_GE(got.size(), at >= first_bytes ? 1u : 0u) << at;
    noticed += !parsed.ok() || !parser.between_frames();
  }
  EXPECT_EQ(noticed, bytes.size());
}

// Writes the checksum that the changed prefix of a frame should have.
void sign_wire_prefix(std::string& prefix) {
  constexpr size_t kChecked = kWireHeaderBytes - sizeof(uint64_t);
  const uint64_t header = hash_bytes(prefix.data(), kChecked);
  const uint64_t checksum =
      hash_bytes(prefix.data() + kWireHeaderBytes, prefix.size() - kWireHeaderBytes, header);
  std::memcpy(prefix.data() + kChecked, &checksum, sizeof checksum);
}

TEST(FrameStream, LimitsAreCheckedBeforeMemoryIsTaken) {
  // Goal: a header that promises much costs little. Method: a right checksum, an endless segment.
  FrameWriter writer;
  auto body = std::make_shared<FrameBody>();
  body->segments.push_back({.owner = nullptr, .data = nullptr, .bytes = kSegmentBytesMax});
  std::string prefix;
  append_wire_prefix({.header = {.kind = FrameKind::message, .sequence = 1}, .body = body}, prefix);
  std::vector<Frame> got;
  {
    SlabPool pool;
    FrameParser small_lane(pool, Lane::small);
    EXPECT_FALSE(feed(small_lane, prefix, got).ok());
    EXPECT_EQ(pool.census().taken, 0u);
  }
  // No sender of ours writes two of them: the second takes the place of an empty one.
  body->segments.push_back({});
  prefix.clear();
  append_wire_prefix({.header = {.kind = FrameKind::message, .sequence = 1}, .body = body}, prefix);
  std::memcpy(prefix.data() + kWireHeaderBytes + kWireSegmentBytes, &kSegmentBytesMax,
              sizeof kSegmentBytesMax);
  sign_wire_prefix(prefix);
  SlabPool pool;
  FrameParser large_lane(pool, Lane::large);
  EXPECT_FALSE(feed(large_lane, prefix, got).ok());
  EXPECT_EQ(pool.census().taken, 0u);
  EXPECT_TRUE(got.empty());
}

// Notes what each segment is to be for.
class NotingPool final : public BufferPool {
 public:
  Segment take(uint64_t bytes, SegmentUse use) override {
    uses.push_back(use);
    return pool_.take(bytes, use);
  }
  std::vector<SegmentUse> uses;

 private:
  SlabPool pool_;
};

// The beginning of a frame that promises a segment for a device.
std::string promise_for_device(uint64_t bytes) {
  auto body = std::make_shared<FrameBody>();
  body->segments.push_back(
      {.owner = nullptr, .data = nullptr, .bytes = bytes, .use = SegmentUse::device});
  std::string prefix;
  append_wire_prefix({.header = {.kind = FrameKind::message, .sequence = 1}, .body = body}, prefix);
  return prefix;
}

TEST(FrameStream, WhatIsPinnedForAPromiseFollowsWhatHasCome) {
  // Goal: pinned memory is there at once, so little of it is taken for bytes that may never come;
  // a lane that brings much is given much. Method: promises just within the bound and beyond it.
  using enum SegmentUse;
  constexpr uint64_t kBound = FrameParser::kPinnedFromTheStart;
  const auto taken_for = [](FrameParser& parser, NotingPool& pool, uint64_t bytes) {
    std::vector<Frame> none;
    EXPECT_TRUE(feed(parser, promise_for_device(bytes), none).ok());
    return pool.uses.back();
  };
  for (const uint64_t bytes : {kBound, kBound + 1}) {
    NotingPool pool;
    FrameParser parser(pool, Lane::large);
    EXPECT_EQ(taken_for(parser, pool, bytes), bytes == kBound ? device : host);
  }
  for (const uint64_t beyond : {0, 1}) {
    NotingPool pool;
    FrameParser parser(pool, Lane::large);
    Frame sent = frame_with(1, {kBound + 1});
    auto body = std::make_shared<FrameBody>(*sent.body);
    body->segments[0].use = device;
    sent.body = std::move(body);
    FrameWriter writer;
    writer.append(sent);
    std::vector<Frame> got;
    ASSERT_TRUE(feed(parser, drain(writer), got).ok());
    ASSERT_EQ(got.size(), 1u);
    expect_equal(sent, got[0]);
    EXPECT_EQ(got[0].body->segments[0].use, device) << "it is still for a device";
    EXPECT_EQ(taken_for(parser, pool, 4 * (kBound + 1) + beyond), beyond == 0 ? device : host);
  }
}

TEST(FrameStream, AClosingRecordEndsTheLaneWithItsReason) {
  const Error reason{.kind = ErrorKind::fenced, .text = "silent for too long", .worker = "ps"};
  for (const size_t extra : {size_t{0}, size_t{200'000}}) {
    Error long_reason = reason;
    long_reason.text += std::string(extra, '.');
    FrameWriter writer;
    writer.append(small_frame(1));
    writer.append_bytes(encode_handshake(
        {.kind = HandshakeKind::closing, .from = {1}, .text = error_to_text(long_reason)}));
    SlabPool pool;
    FrameParser parser(pool, Lane::small);
    std::vector<Frame> got;
    ASSERT_TRUE(feed(parser, drain(writer), got, 1'000).ok());
    EXPECT_EQ(got.size(), 1u);
    ASSERT_TRUE(parser.closing().has_value());
    EXPECT_EQ(*parser.closing(), long_reason);
  }
}

TEST(FrameStream, OtherHandshakesAreNotWelcomeAmongFrames) {
  FrameWriter writer;
  writer.append_bytes(encode_handshake({.kind = HandshakeKind::hello, .token = 1}));
  SlabPool pool;
  FrameParser parser(pool, Lane::small);
  std::vector<Frame> got;
  EXPECT_FALSE(feed(parser, drain(writer), got).ok());
}

TEST(Handshakes, SurviveTheWireAndAnyChangeIsNoticed) {
  const Handshake sent{
      .kind = HandshakeKind::welcome,
      .lane = Lane::small,
      .from = {3},
      .to = {4},
      .incarnation = {UINT64_MAX},
      .token = 12,
      .last_token = 13,
      .position = {.source = {UINT64_MAX - 1}, .acknowledged = 14, .received = {15, 16}},
      .text = "text"};
  const std::string bytes = encode_handshake(sent);
  const auto read = [](const std::string& record) -> Result<Handshake> {
    const auto all = std::as_bytes(std::span(record));
    auto header = parse_handshake_header(all.first(kHandshakeBytes));
    if (!header.ok()) return header.error();
    return finish_handshake(header.value(), record.substr(kHandshakeBytes));
  };
  const Result<Handshake> got = read(bytes);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().kind, sent.kind);
  EXPECT_EQ(got.value().lane, sent.lane);
  EXPECT_EQ(got.value().from, sent.from);
  EXPECT_EQ(got.value().to, sent.to);
  EXPECT_EQ(got.value().incarnation, sent.incarnation);
  EXPECT_EQ(got.value().token, sent.token);
  EXPECT_EQ(got.value().last_token, sent.last_token);
  EXPECT_EQ(got.value().position, sent.position);
  EXPECT_EQ(got.value().text, sent.text);
  Handshake large = sent;  // The other lane's has no position.
  large.lane = Lane::large;
  const Result<Handshake> got_large = read(encode_handshake(large));
  ASSERT_TRUE(got_large.ok());
  EXPECT_EQ(got_large.value().position, Position());
  EXPECT_EQ(got_large.value().text, sent.text);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    const Result<Handshake> result = read(changed);
    // Reserved bytes are neither sent nor checked.
    EXPECT_TRUE(!result.ok() || (at >= 44 && at < 64)) << at;
  }
}

TEST(Handshakes, AReasonOfEachKindComesBack) {
  for (int kind = 0; kind <= static_cast<int>(kLastErrorKind); ++kind) {
    const Error why{.kind = static_cast<ErrorKind>(kind), .text = "why", .worker = "ps"};
    EXPECT_EQ(error_from_text(error_to_text(why)).kind, why.kind);
  }
}

TEST(Handshakes, AnyTextIsSomeReason) {
  EXPECT_EQ(error_from_text("").kind, ErrorKind::protocol);
  EXPECT_EQ(error_from_text(std::string("\xff\0\0\0\0text", 9)).kind, ErrorKind::protocol);
  EXPECT_EQ(error_from_text(std::string("\0\xff\xff\xff\xfftext", 9)).kind, ErrorKind::protocol);
}

}  // namespace
}  // namespace rehearsal::real
