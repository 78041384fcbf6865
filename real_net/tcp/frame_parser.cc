#include "real_net/tcp/frame_parser.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

constexpr size_t kInboxBytes = 64 * 1024;

// Memory for a long header is taken in steps of at most what has come of it already, and this.
constexpr size_t kLongPrefixStep = 64 * 1024;

Error malformed_frame(std::string text) {
  Error error;
  error.kind = ErrorKind::protocol;
  error.text = "malformed frame: " + std::move(text);
  return error;
}

}  // namespace

FrameParser::FrameParser(BufferPool& pool, Lane lane)
    : pool_(pool), lane_(lane), inbox_(kInboxBytes) {}

std::span<const std::byte> FrameParser::inbox() const {
  return {inbox_.data() + begin_, end_ - begin_};
}

bool FrameParser::between_frames() const { return state_ == State::header && begin_ == end_; }

void FrameParser::compact() {
  if (begin_ == 0) return;
  std::memmove(inbox_.data(), inbox_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

std::span<iovec> FrameParser::room(uint64_t bytes_max) {
  REHEARSAL_CHECK(bytes_max > 0);
  compact();
  size_t used = 0;
  direct_room_ = 0;
  if (state_ == State::segments) {
    // All bytes in the inbox have been moved to the segment before.
    Segment& segment = body_->segments[segment_];
    direct_room_ = std::min(segment.bytes - segment_filled_, bytes_max);
    room_[used++] = {segment.data + segment_filled_, direct_room_};
  } else if (!long_prefix_.empty()) {
    const size_t step = std::max(long_prefix_filled_, kLongPrefixStep);
    long_prefix_.resize(std::min<uint64_t>(prefix_bytes_, long_prefix_filled_ + step));
    direct_room_ = std::min<uint64_t>(long_prefix_.size() - long_prefix_filled_, bytes_max);
    room_[used++] = {long_prefix_.data() + long_prefix_filled_, direct_room_};
  }
  const uint64_t rest = std::min<uint64_t>(bytes_max - direct_room_, inbox_.size() - end_);
  const bool wanted = direct_room_ == 0 || long_prefix_.empty();
  if (rest > 0 && wanted) room_[used++] = {inbox_.data() + end_, rest};
  return {room_.data(), used};
}

Status FrameParser::commit(uint64_t bytes, std::vector<Frame>& frames) {
  const uint64_t direct = std::min(bytes, direct_room_);
  if (state_ == State::segments) {
    advance_segment(direct);
  } else {
    long_prefix_filled_ += direct;
  }
  end_ += bytes - direct;
  for (;;) {
    Result<bool> stepped = step(frames);
    if (!stepped.ok()) return stepped.error();
    if (!stepped.value()) return Unit{};
  }
}

Result<bool> FrameParser::step(std::vector<Frame>& frames) {
  if (closing_) return false;
  switch (state_) {
    case State::header:
      return on_header();
    case State::prefix:
      return record_ ? on_closing() : on_prefix();
    case State::segments:
      return on_segments(frames);
    case State::trailer:
      return on_trailer(frames);
  }
  return false;
}

Result<bool> FrameParser::on_header() {
  if (inbox().size() < kWireHeaderBytes) return false;
  const auto bytes = inbox().first(kWireHeaderBytes);
  if (is_handshake(bytes)) {
    Result<HandshakeHeader> record = parse_handshake_header(bytes);
    if (!record.ok()) return record.error();
    if (record.value().handshake.kind != HandshakeKind::closing)
      return malformed_frame("a handshake after the link was made");
    prefix_bytes_ = kHandshakeBytes + record.value().text_bytes;
    record_ = std::move(record).value();
  } else {
    Result<WireHeader> header = parse_wire_header(bytes);
    if (!header.ok()) return header.error();
    header_ = header.value();
    prefix_bytes_ = wire_prefix_bytes(header_);
    if (lane_ == Lane::small && header_.envelope_bytes > kSmallFrameBytes)
      return malformed_frame("too large for its lane");
  }
  state_ = State::prefix;
  if (prefix_bytes_ <= inbox_.size()) return true;
  long_prefix_.assign(inbox().begin(), inbox().end());
  long_prefix_filled_ = long_prefix_.size();
  begin_ = end_ = 0;
  return true;
}

Result<bool> FrameParser::on_prefix() {
  std::span<const std::byte> prefix;
  if (long_prefix_.empty()) {
    if (inbox().size() < prefix_bytes_) return false;
    prefix = inbox().first(prefix_bytes_);
  } else {
    if (long_prefix_filled_ < prefix_bytes_) return false;
    prefix = {long_prefix_.data(), prefix_bytes_};
  }
  if (Status started = start_body(prefix); !started.ok()) return started.error();
  if (long_prefix_.empty()) take_from_inbox(prefix_bytes_);
  long_prefix_ = {};
  state_ = State::segments;
  return true;
}

Result<bool> FrameParser::on_closing() {
  const std::span<const std::byte> bytes =
      long_prefix_.empty() ? inbox()
                           : std::span<const std::byte>(long_prefix_.data(), long_prefix_filled_);
  if (bytes.size() < prefix_bytes_) return false;
  const auto text = bytes.subspan(kHandshakeBytes, prefix_bytes_ - kHandshakeBytes);
  Result<Handshake> record = finish_handshake(
      *record_, std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  if (!record.ok()) return record.error();
  closing_ = error_from_text(record.value().text);
  return false;
}

Status FrameParser::start_body(std::span<const std::byte> prefix) {
  Result<std::vector<Segment>> segments = parse_wire_segments(header_, prefix);
  if (!segments.ok()) return segments.error();
  body_ = std::make_shared<FrameBody>();
  body_->segments = std::move(segments).value();
  const auto envelope = prefix.last(header_.envelope_bytes);
  body_->envelope.assign(reinterpret_cast<const char*>(envelope.data()), envelope.size());
  uint64_t total = header_.envelope_bytes;
  for (const Segment& segment : body_->segments) {
    total += segment.bytes;
    if (total > kSegmentBytesMax) return malformed_frame("too large");
  }
  if (lane_ == Lane::small && total > kSmallFrameBytes)
    return malformed_frame("too large for its lane");
  segment_ = 0;
  checksum_.restart();
  return begin_segment();
}

// Takes the memory of the present segment, if there is one.
Status FrameParser::begin_segment() {
  segment_filled_ = 0;
  if (segment_ == body_->segments.size()) return Unit{};
  Segment& segment = body_->segments[segment_];
  try {
    segment = memory_for(segment);
  } catch (const std::bad_alloc&) {
    Error error;
    error.kind = ErrorKind::protocol;
    error.text = "no memory for a segment of " + std::to_string(segment.bytes) + " bytes";
    return error;
  }
  checksum_.begin_segment();
  return Unit{};
}

Segment FrameParser::memory_for(const Segment& promised) {
  const bool believed = promised.use != SegmentUse::device || promised.bytes <= pinned_max_;
  Segment segment = pool_.take(promised.bytes, believed ? promised.use : SegmentUse::host);
  segment.use = promised.use;
  return segment;
}

void FrameParser::end_segment() {
  checksum_.end_segment();
  const Segment& segment = body_->segments[segment_++];
  if (segment.use == SegmentUse::device) pinned_max_ = std::max(pinned_max_, 4 * segment.bytes);
}

void FrameParser::advance_segment(uint64_t bytes) {
  const Segment& segment = body_->segments[segment_];
  checksum_.update({segment.data + segment_filled_, bytes});
  segment_filled_ += bytes;
}

Result<bool> FrameParser::on_segments(std::vector<Frame>& frames) {
  while (segment_ < body_->segments.size()) {
    Segment& segment = body_->segments[segment_];
    const uint64_t count = std::min<uint64_t>(segment.bytes - segment_filled_, inbox().size());
    if (count > 0) {
      std::memcpy(segment.data + segment_filled_, inbox().data(), count);
      take_from_inbox(count);
      advance_segment(count);
    }
    if (segment_filled_ < segment.bytes) return false;
    end_segment();
    if (Status begun = begin_segment(); !begun.ok()) return begun.error();
  }
  if (body_->segments.empty()) {
    complete(frames);
  } else {
    state_ = State::trailer;
  }
  return true;
}

Result<bool> FrameParser::on_trailer(std::vector<Frame>& frames) {
  if (inbox().size() < kWireTrailerBytes) return false;
  uint64_t checksum = 0;
  std::memcpy(&checksum, inbox().data(), sizeof checksum);
  if (checksum != checksum_.value()) return malformed_frame("bad checksum of the segments");
  take_from_inbox(kWireTrailerBytes);
  complete(frames);
  return true;
}

void FrameParser::complete(std::vector<Frame>& frames) {
  const bool message = header_.frame.kind == FrameKind::message;
  frames.push_back({header_.frame, message ? std::move(body_) : nullptr});
  body_.reset();
  state_ = State::header;
}

}  // namespace rehearsal::real
