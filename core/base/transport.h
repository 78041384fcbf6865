#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/base/frame.h"
#include "core/base/ids.h"
#include "core/base/time.h"

namespace rehearsal {

// How much of one incarnation's messages has arrived at its peer, as the two last fields of
// FrameHeader say it.
struct Position {
  Incarnation source;  // whose messages; zero: of none
  uint64_t acknowledged = 0;
  std::array<uint64_t, 2> received{};
  bool operator==(const Position&) const = default;
};

// A greeting, and the text of a reason to close, have so many bytes at most.
inline constexpr uint32_t kGreetingMax = (1 << 20) + (64 << 10);

// Each end of a link gives it to the other when the link is made. `greeting` is the node's own text
// (core/node/hello.h); the transport carries it unread. `position` is the giver's FrameSink's.
struct Hello {
  WorkerId worker;
  Incarnation incarnation;
  std::string greeting;
  Position position;
};

// Moves frames between this worker's incarnation and its peers. A link has two lanes (see
// frame.h). On a living link a lane is FIFO and lossless; after `on_peer_lost` any suffix of what
// was sent may be missing, and nothing of it arrives later. A link that is lost is made again by
// the transport itself, with back-off, until `close`. All methods are called on the strand.
class Transport {
 public:
  virtual ~Transport() = default;

  // Wants a link to `peer`: connects, or lets it connect, and keeps trying until `close`. Answers
  // with on_peer_up. Repeated calls have no effect.
  virtual void open(WorkerId peer) = 0;

  // Sends on the lane of the frame's size. Never blocks: what the link cannot take is queued. If
  // the link is down the frame is dropped: the session resends after on_peer_up. Segments are read
  // until the frame has left; the body is kept as long. Of one that is not filled goes what is; the
  // rest, and what comes behind it on its lane, waits for send_on.
  virtual void send(WorkerId peer, Frame frame) = 0;

  // More of the segments of a frame may be read (FrameBody::filled): it, and what waits behind it,
  // leaves.
  virtual void send_on(WorkerId peer) = 0;

  // Breaks the link, if one stands: nothing more of what was sent arrives. on_peer_lost follows.
  virtual void break_link(WorkerId peer, const Error& why) = 0;

  // Ends the link for good and stops making it again; tells the peer `reason`, which is short
  // (short_text.h), if it can, after what was sent before. No on_peer_lost follows. Later attempts
  // of the same incarnation of the peer to connect are refused with the same reason (which the peer
  // sees as on_peer_lost with closed_by_peer); a new incarnation of it is reported by on_peer_up as
  // usual. `open` undoes it.
  virtual void close(WorkerId peer, const Error& reason) = 0;

  // Bytes accepted by `send` that have not left this process.
  [[nodiscard]] virtual uint64_t queued_bytes(WorkerId peer) const = 0;

  // Ends all links after what is queued has been handed to the network (bounded in time); nothing
  // is reported any more.
  virtual void stop() = 0;
};

// How the last attempts to connect to a peer ended: all alike, nobody listens at its address.
struct Refusals {
  uint64_t count = 0;
  Duration lasting{};   // from the first of them to the last
  std::string at = {};  // its address, for people; empty: it has none
};

// The reports of a Transport; called on the strand, one at a time.
class FrameSink {
 public:
  virtual ~FrameSink() = default;

  // How much has arrived of `peer`, for the hello to it. Asked when a link is being made, and none
  // stands: what the hello says is true when the peer hears it, or too little. Changes nothing.
  [[nodiscard]] virtual Position position(WorkerId peer) const = 0;

  // A link to `hello.worker` stands, both lanes of it. It replaces an earlier one of that peer:
  // if that was not reported lost, it is lost now.
  virtual void on_peer_up(const Hello& hello) = 0;

  // A frame arrived on a standing link. Its segments were taken from the BufferPool.
  virtual void on_frame(WorkerId peer, Frame frame) = 0;

  // The link is lost (reset, end of stream, bad checksum), or the peer closed it for good
  // (`closed_by_peer`, with its reason). Unless closed, the transport makes it again.
  virtual void on_peer_lost(WorkerId peer, const Error& why, bool closed_by_peer) = 0;

  // queued_bytes(peer) fell below the transport's low-water mark after having been above the
  // high one.
  virtual void on_drained(WorkerId peer) = 0;

  // Once more an attempt to connect to `peer` was refused where it is reached, since the last
  // connection, arrival or attempt that ended otherwise. Never while a link to it stands.
  virtual void on_refused(WorkerId peer, const Refusals& refusals) = 0;
};

}  // namespace rehearsal
