#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/buffer_pool.h"
#include "core/base/frame.h"
#include "real_net/tcp/handshake.h"
#include "real_net/tcp/segment_checksum.h"

namespace rehearsal::real {

// Turns the bytes of one lane into frames. Tells where the next bytes belong, so that they are read
// straight into the memory of their segment; headers and small data go through a buffer. Every
// length is checked before memory is taken for it, and memory for long headers grows with the bytes
// that have come. Of a segment that devices read no more is pinned before it has come than
// kPinnedFromTheStart, or four times the largest one that the lane has brought: a larger one is
// read into memory that is not pinned, as it costs nothing until its bytes are there. After an
// error, or a `closing` record, nothing more is read.
class FrameParser {
 public:
  static constexpr uint64_t kPinnedFromTheStart = uint64_t{64} << 20;

  FrameParser(BufferPool& pool, Lane lane);

  // Where the next bytes go: one or two stretches, `bytes_max` in all at most.
  [[nodiscard]] std::span<iovec> room(uint64_t bytes_max);

  // `bytes` have been put there. Complete frames are appended to `frames`.
  [[nodiscard]] Status commit(uint64_t bytes, std::vector<Frame>& frames);

  // The reason that a `closing` record gave.
  [[nodiscard]] const std::optional<Error>& closing() const { return closing_; }

  // Whether the stream may end here without cutting a frame.
  [[nodiscard]] bool between_frames() const;

 private:
  enum class State : uint8_t { header, prefix, segments, trailer };

  [[nodiscard]] std::span<const std::byte> inbox() const;
  void take_from_inbox(size_t bytes) { begin_ += bytes; }
  void compact();

  // Each makes one step; false if more bytes are needed.
  [[nodiscard]] Result<bool> step(std::vector<Frame>& frames);
  [[nodiscard]] Result<bool> on_header();
  [[nodiscard]] Result<bool> on_prefix();
  [[nodiscard]] Result<bool> on_closing();
  [[nodiscard]] Status start_body(std::span<const std::byte> prefix);
  [[nodiscard]] Result<bool> on_segments(std::vector<Frame>& frames);
  [[nodiscard]] Status begin_segment();
  [[nodiscard]] Segment memory_for(const Segment& promised);
  void end_segment();
  void advance_segment(uint64_t bytes);
  [[nodiscard]] Result<bool> on_trailer(std::vector<Frame>& frames);
  void complete(std::vector<Frame>& frames);

  BufferPool& pool_;
  const Lane lane_;
  State state_ = State::header;
  std::optional<Error> closing_;

  std::vector<std::byte> inbox_;  // bytes that have come and are not yet used: [begin_, end_)
  size_t begin_ = 0;
  size_t end_ = 0;
  std::array<iovec, 2> room_{};
  uint64_t direct_room_ = 0;  // bytes of room_ that belong to the present segment or long prefix

  WireHeader header_;
  std::optional<HandshakeHeader> record_;
  uint64_t prefix_bytes_ = 0;
  std::vector<std::byte> long_prefix_;  // of a header that does not fit the inbox
  size_t long_prefix_filled_ = 0;

  std::shared_ptr<FrameBody> body_;
  size_t segment_ = 0;
  uint64_t segment_filled_ = 0;
  uint64_t pinned_max_ = kPinnedFromTheStart;
  SegmentChecksum checksum_;
};

}  // namespace rehearsal::real
