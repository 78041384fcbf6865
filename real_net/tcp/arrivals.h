#pragma once

#include <optional>
#include <string>
#include <vector>

#include "real_net/tcp/connection.h"

namespace rehearsal::real {

// So many bytes of one connection are read in a turn, and as many are written.
inline constexpr uint64_t kBytesPerTurn = 256 * 1024;

inline constexpr size_t kRecordBytes = 16 * 1024;

// The error of a connection that is broken.
[[nodiscard]] inline Error broken(std::string text) {
  return {.kind = ErrorKind::peer_lost, .text = std::move(text)};
}

// The arrivals that one turn of the polling thread brings to the strand.
struct Connection::Arrivals {
  bool writable = false;
  bool secured = false;
  bool unproven = false;  // why is in `broken`
  std::optional<Handshake> handshake;
  std::vector<Frame> frames;
  uint64_t frame_bytes = 0;  // that were read for them; see Connection::under_way_
  bool ended = false;
  std::optional<Error> reason;  // of the end
  std::optional<Error> broken;
  bool turn_ended = false;  // there may be more that the kernel does not tell of
  bool blocked = false;     // the kernel has no more for now
  uint64_t fed = 0;         // bytes of the network that the channel was given in this turn

  [[nodiscard]] bool any() const {
    return writable || secured || handshake || !frames.empty() || turn_ended || ended || broken;
  }
};

}  // namespace rehearsal::real
