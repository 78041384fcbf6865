#include "real_net/tcp/frame_writer.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

// Segments up to this are copied: cheaper than an entry of their own in the system call.
constexpr uint64_t kCopiedBytesMax = 16 * 1024;

// A copied stretch that has reached this size is not appended to any more.
constexpr size_t kTextBytesMax = 64 * 1024;

}  // namespace

void FrameWriter::append(const Frame& frame) {
  const bool all_small =
      !frame.body || (frame.body->is_filled() &&
                      std::all_of(frame.body->segments.begin(), frame.body->segments.end(),
                                  [](const Segment& s) { return s.bytes <= kCopiedBytesMax; }));
  all_small ? append_copied(frame) : append_pointed_at(frame);
}

void FrameWriter::append_bytes(std::string_view bytes) {
  open_text() += bytes;
  queued_bytes_ += bytes.size();
}

// The stretch of copied bytes at the end of the queue.
std::string& FrameWriter::open_text() {
  const bool open = !pieces_.empty() && pieces_.back().body == nullptr && !pieces_.back().trailer &&
                    pieces_.back().owned.size() < kTextBytesMax;
  if (!open) pieces_.emplace_back();
  return pieces_.back().owned;
}

void FrameWriter::append_copied(const Frame& frame) {
  std::string& text = open_text();
  const size_t before = text.size();
  append_wire_prefix(frame, text);
  if (frame.body && !frame.body->segments.empty()) {
    uint64_t checksum = 0;
    for (const Segment& segment : frame.body->segments) {
      text.append(reinterpret_cast<const char*>(segment.data), segment.bytes);
      checksum = fold_segment_checksum(checksum, {segment.data, segment.bytes});
    }
    text.append(reinterpret_cast<const char*>(&checksum), kWireTrailerBytes);
  }
  queued_bytes_ += text.size() - before;
}

void FrameWriter::append_pointed_at(const Frame& frame) {
  std::string& text = open_text();
  const size_t before = text.size();
  append_wire_prefix(frame, text);
  queued_bytes_ += text.size() - before;
  const std::vector<Segment>& segments = frame.body->segments;
  uint64_t segments_before = 0;
  for (size_t i = 0; i < segments.size(); segments_before += segments[i++].bytes)
    add_piece({.owned = {},
               .body = frame.body,
               .data = segments[i].data,
               .bytes = segments[i].bytes,
               .before = segments_before,
               .first_of_body = i == 0,
               .last_of_body = i + 1 == segments.size()});
  add_piece({.owned = std::string(kWireTrailerBytes, '\0'), .body = nullptr, .trailer = true});
}

void FrameWriter::add_piece(Piece piece) {
  queued_bytes_ += piece.body ? piece.bytes : piece.owned.size();
  pieces_.push_back(std::move(piece));
}

const std::byte* FrameWriter::start_of(const Piece& piece) const {
  return piece.body ? piece.data : reinterpret_cast<const std::byte*>(piece.owned.data());
}

uint64_t FrameWriter::ready(const Piece& piece) {
  if (piece.body == nullptr) return piece.owned.size();
  if (piece.body->filled == nullptr) return piece.bytes;
  const uint64_t filled = *piece.body->filled;
  return filled <= piece.before ? 0 : std::min(piece.bytes, filled - piece.before);
}

bool FrameWriter::can_leave() const {
  if (pieces_.empty()) return false;
  const Piece& front = pieces_.front();
  return ready(front) > front_consumed_ || front_consumed_ == front.bytes;
}

size_t FrameWriter::gather(std::span<iovec> room, uint64_t bytes_max) {
  size_t used = 0;
  uint64_t offset = front_consumed_;
  for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
    if (used == room.size() || bytes_max == 0) break;
    const uint64_t size = piece->body ? piece->bytes : piece->owned.size();
    const uint64_t count = std::min(ready(*piece) - offset, bytes_max);
    if (count == 0 && offset < size) break;
    if (piece->body && hash_to(*piece, offset + count) && piece->last_of_body) {
      const uint64_t checksum = checksum_.value();
      std::memcpy(std::next(piece)->owned.data(), &checksum, kWireTrailerBytes);
    }
    if (count > 0) {
      auto* start = const_cast<std::byte*>(start_of(*piece) + offset);
      room[used++] = {.iov_base = start, .iov_len = count};
      bytes_max -= count;
    }
    if (offset + count < size) break;
    offset = 0;
  }
  return used;
}

// Each byte is hashed once, however often it is gathered.
bool FrameWriter::hash_to(Piece& piece, uint64_t end) {
  if (piece.hash_ended) return false;
  if (piece.hashed == 0) {
    if (piece.first_of_body) checksum_.restart();
    checksum_.begin_segment();
  }
  if (end > piece.hashed) {
    checksum_.update({piece.data + piece.hashed, end - piece.hashed});
    piece.hashed = end;
  }
  if (piece.hashed < piece.bytes) return false;
  checksum_.end_segment();
  piece.hash_ended = true;
  return true;
}

void FrameWriter::consume(uint64_t bytes) {
  REHEARSAL_CHECK(bytes <= queued_bytes_, bytes, queued_bytes_);
  queued_bytes_ -= bytes;
  front_consumed_ += bytes;
  while (!pieces_.empty()) {
    const Piece& front = pieces_.front();
    const uint64_t size = front.body ? front.bytes : front.owned.size();
    if (front_consumed_ < size || (front.body && !front.hash_ended)) break;
    front_consumed_ -= size;
    pieces_.pop_front();
  }
}

void FrameWriter::clear() {
  pieces_.clear();
  front_consumed_ = 0;
  queued_bytes_ = 0;
}

}  // namespace rehearsal::real
