#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/base/error.h"
#include "core/base/transport.h"
#include "net_fake/direction.h"
#include "net_fake/schedule.h"

namespace rehearsal::net_fake {

class FakeTransport;
class Network;

// The frames that a connection has carried one way.
struct Carried {
  uint64_t frames = 0;
  uint64_t messages = 0;
  uint64_t bytes = 0;
};

// The place of a side among both.
inline size_t at(int side) { return static_cast<size_t>(side); }

// The link of two workers through all their lives: connections made, lost and made again. An end
// is a side, 0 or 1; `1 - side` is the other one.
//
// A connection is whole until something breaks it. Then each end is still to be told, behind what
// reaches it of the other's last frames; what it sends meanwhile is gone. The end that hears first
// begins the next connection.
class Link final : public Occurrence, private LaneEnd {
 public:
  Link(Network& network, WorkerId first, WorkerId second);

  [[nodiscard]] int side_of(WorkerId worker) const { return worker == workers_[0] ? 0 : 1; }
  // The way out of `side`.
  [[nodiscard]] Direction& out_of(int side) { return directions_[static_cast<size_t>(side)]; }

  // A life of a worker begins to use the link, and ends its use: in good order (what was sent still
  // arrives), or by a crash.
  void attach(int side, FakeTransport& transport);
  void stop(int side);
  void crash(int side);

  // The Transport's methods.
  void open(int side);
  void send(int side, Frame&& frame);
  void send_on(int side);
  void close(int side, const Error& reason);
  [[nodiscard]] uint64_t queued_bytes(int side);

  // Breaks the connection, as a reset does. Nothing if there is none.
  void reset(std::string_view why);
  // Partitions have changed.
  void update_ways();
  [[nodiscard]] bool standing() const { return whole_; }

  WorkerId worker(uint64_t ticket) const override;
  Chain chain(uint64_t ticket) const override;
  bool due(uint64_t ticket) const override;
  void happen(uint64_t ticket) override;

 private:
  enum class LinkIntent : uint8_t {
    none,       // never opened, or its worker has gone
    open,       // wants a connection and connects
    dismissed,  // the peer has closed: takes a connection, makes none
    closed,     // takes none from the incarnation that it closed
  };
  // The news that an end is still to get about the connection that it believes in.
  struct Ending {
    Error why;
    bool closed_by_peer = false;
    bool local = false;  // its own clock ran out; else it comes through the network, in order
    Instant not_before{};
  };
  struct End {
    FakeTransport* transport = nullptr;
    LinkIntent intent = LinkIntent::none;
    Error reason;             // of closing
    Incarnation known;        // the life of the other end that it was told of last
    Incarnation closed_to;    // whom it closed; zero: whoever tries first
    uint64_t connection = 0;  // what it believes to stand; 0: none
    bool up_pending = false;  // it is about to be told of connection_
    Hello peer_hello;         // then: as it was said when the connection was made
    std::optional<Ending> ending;
    uint64_t ending_serial = 0;
    // By lane: frames of this connection that are not filled, and those behind them.
    std::array<std::deque<Frame>, 2> held;
  };
  enum class Step : uint8_t { attempt, up, ending, give_up, drained };
  static uint64_t ticket_of(Step step, int side, uint64_t serial);

  // Connecting.
  void consider_attempt(bool first);
  void attempt();
  [[nodiscard]] bool can_connect() const;
  [[nodiscard]] std::optional<int> knocker() const;
  [[nodiscard]] bool refused_by_chance(uint64_t attempt);
  void tell_nobody_there(int side);
  void draw_life();
  [[nodiscard]] bool refuses(int side);
  void tell_refusal(int side);
  void connect();
  void tell_up(int side);
  [[nodiscard]] Duration back_off(uint64_t failures);
  void plan_attempt(Duration waiting);
  [[nodiscard]] bool hangs(uint64_t attempt);
  [[nodiscard]] bool corrupts(const Direction& direction, const Frame& frame, Direction::Name name);

  void hand_over(int side, Frame&& frame);
  [[nodiscard]] bool stands_for(const End& end) const {
    return whole_ && end.connection == connection_;
  }

  // Breaking.
  void arrive(FifoLane& lane, Frame&& frame) override;
  [[nodiscard]] bool has_lived(int side, FrameKind next) const;
  enum class Cause : uint8_t { reset, timed_out };
  void break_connection(const Error& why, Cause cause, std::optional<int> dead_side);
  [[nodiscard]] Ending ending_after_break(int side, Error why, Cause cause, bool unheard);
  void give_up();
  void end_in_order(int side, const Error& reason, bool closing);
  void set_ending(int side, Ending ending);
  void try_ending(int side);
  void tell_lost(int side);
  void forget(int side);
  [[nodiscard]] Error lost_error(int side, std::string_view why) const;
  [[nodiscard]] Key key(DecisionKind kind, uint64_t number) const;
  void schedule(Step step, int side, uint64_t serial, Duration after);

  Network& network_;
  const std::array<WorkerId, 2> workers_;
  std::array<Direction, 2> directions_;  // [side]: out of that side
  std::array<End, 2> ends_;

  bool whole_ = false;
  uint64_t connection_ = 0;
  uint64_t connections_before_ = 0;  // of earlier lives: decisions count from there
  uint64_t attempt_serial_ = 0;
  // Of the present connection; by the side it goes out of.
  std::array<Carried, 2> carried_;
  bool is_flaky_ = false;  // the weather lets each of its connections live for as long as it says

  std::array<bool, 2> vacant_{};  // a life has ended there, and its port refuses connections
  uint64_t refusals_ = 0;         // attempts in a row that were refused
  Instant refused_since_{};       // the first of them

  bool attempt_pending_ = false;
  bool attempt_blocked_ = false;
  bool hung_ = false;      // the last attempt was not answered
  bool stopped_ = false;   // a partition stops a way
  uint64_t attempts_ = 0;  // of these two lives
  uint64_t failures_ = 0;  // attempts since the last connection
  uint64_t give_up_serial_ = 0;
};

}  // namespace rehearsal::net_fake
