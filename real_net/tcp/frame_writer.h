#pragma once

#include <sys/uio.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/frame.h"
#include "real_net/tcp/segment_checksum.h"

namespace rehearsal::real {

// The output of one lane, in order. Small data is copied together, so that one system call sends
// many frames; large segments are pointed at, and their frame's body kept until they have left. Of
// a body that is not filled leaves what is; what is behind it waits.
class FrameWriter {
 public:
  void append(const Frame& frame);
  // Bytes that belong to no frame.
  void append_bytes(std::string_view bytes);

  // Fills `room` with what comes next, up to `bytes_max`; how many entries it used. Valid until the
  // next append or consume.
  [[nodiscard]] size_t gather(std::span<iovec> room, uint64_t bytes_max);
  // The first `bytes` of what was gathered have left.
  void consume(uint64_t bytes);

  [[nodiscard]] uint64_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] bool empty() const { return queued_bytes_ == 0; }
  // Whether something may leave now.
  [[nodiscard]] bool can_leave() const;
  void clear();

 private:
  // A stretch of bytes. Of a segment that is pointed at, or owned.
  struct Piece {
    std::string owned;
    std::shared_ptr<const FrameBody> body;  // null: owned
    const std::byte* data = nullptr;
    uint64_t bytes = 0;
    uint64_t before = 0;         // of a segment: the bytes of those before it in its body
    uint64_t hashed = 0;         // of a segment: how far the checksum has come
    bool hash_ended = false;     // of a segment
    bool first_of_body = false;  // the checksum starts
    bool last_of_body = false;   // the trailer follows
    bool trailer = false;        // its bytes are known once all segments are hashed
  };

  void append_copied(const Frame& frame);
  void append_pointed_at(const Frame& frame);
  [[nodiscard]] std::string& open_text();
  void add_piece(Piece piece);
  // So many of its bytes may leave by now.
  [[nodiscard]] static uint64_t ready(const Piece& piece);
  [[nodiscard]] const std::byte* start_of(const Piece& piece) const;
  // True if that ends the segment's part of the checksum.
  bool hash_to(Piece& piece, uint64_t end);

  std::deque<Piece> pieces_;
  uint64_t front_consumed_ = 0;  // of the first piece
  uint64_t queued_bytes_ = 0;
  SegmentChecksum checksum_;  // of the frame whose segments are leaving
};

}  // namespace rehearsal::real
