#pragma once

#include <array>
#include <memory>
#include <optional>

#include "core/base/transport.h"
#include "real_net/tcp/back_off.h"
#include "real_net/tcp/connection.h"
#include "real_net/tcp/name_lookup.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {

struct TransportOptions {
  // Of all workers, for messages; may be empty.
  std::vector<std::string> names;
  Seed seed;  // of the spread of back-off
  BackOffOptions back_off;
  KeepAlive keep_alive;
  // For the peer to say who it is on both connections of a link.
  Duration handshake_timeout = std::chrono::seconds(5);
  // A link on which no byte of a frame that has begun comes for so long, twice as long at most, is
  // lost, and made again.
  Duration frame_timeout = std::chrono::seconds(30);
  // Connections on which an answer is still leaving, refusals for example. One more has none.
  size_t answers_max = 256;
  // The end that waits to be connected to tries it itself after this.
  Duration patience = std::chrono::milliseconds(200);
  // For what is queued to leave when a link is closed, or all are.
  Duration linger_timeout = std::chrono::seconds(2);
  // Where peers are told to connect to, instead of where it listens. Port 0: the one it listens at.
  std::optional<Address> advertise;
  uint64_t high_water_bytes = uint64_t{16} << 20;
  uint64_t low_water_bytes = uint64_t{4} << 20;
  // The run that this worker is of. Peers of another are refused, and no link is touched by them.
  std::string run;
  // The proof of this worker, and the means to check that of others. Null: nobody proves anything.
  std::shared_ptr<Credentials> credentials;
  // Told that no descriptor is left for a connection, and of ends that have not proved that they
  // belong to this group, now and then while that lasts. On the strand.
  RareReport::Tell on_shortage;
  RareReport::Tell on_unproven;
};

class TcpLink;

// The services that a link needs of its transport. On the strand.
class LinkHost {
 public:
  virtual ~LinkHost() = default;
  [[nodiscard]] virtual const TransportOptions& options() const = 0;
  [[nodiscard]] virtual const Hello& hello() const = 0;
  [[nodiscard]] virtual ConnectionContext& context() = 0;
  [[nodiscard]] virtual FrameSink& sink() = 0;
  // Where peers connect to.
  [[nodiscard]] virtual Address reached_at() const = 0;
  // Finds the numeric addresses of a peer's host; see NameLookup.
  virtual void look_up(WorkerId peer, const Address& address, NameLookup::Done done) = 0;
  // Whether the other end of a connection has proved that it is this worker; tells if not.
  [[nodiscard]] virtual bool believes(const Connection& connection, WorkerId worker) = 0;
  // The link has something to write.
  virtual void mark_dirty(TcpLink& link) = 0;
  // The link has come up, or was lost.
  virtual void on_change(const TcpLink& link) = 0;
  // Takes over a connection on which nothing more is said than what its writer holds.
  virtual void see_off(std::shared_ptr<Connection> connection) = 0;
  // The same after an answer that the peer can do without: if there are too many, it is cut.
  virtual void see_off_answer(std::shared_ptr<Connection> connection) = 0;
};

// The link to one peer, through all its connections. A link is two connections, one for each lane,
// bound by a token. The worker with the lower id makes them; the other one does so only if it waits
// in vain, and gives way when both try. Each end says where it is reached, so that a link to a peer
// that came from elsewhere can be made again from either end. On the strand.
class TcpLink final : public ConnectionOwner {
 public:
  TcpLink(LinkHost& host, WorkerId peer);

  void set_address(Address address);

  // Transport's.
  void open();
  void send(const Frame& frame);
  void send_on();
  void break_off(const Error& why);
  void close(const Error& reason);
  void stop();
  void abort();
  [[nodiscard]] uint64_t queued_bytes() const;

  void flush();

  // Whether it is up and leads to a worker on this machine.
  [[nodiscard]] bool is_beside() const;

  // The peer said hello on a connection that it has made.
  void on_arrival(std::shared_ptr<Connection> connection, Handshake hello);

  void on_connected(Connection& connection) override;
  void on_handshake(Connection& connection, Handshake handshake) override;
  void on_frames(Connection& connection, std::vector<Frame> frames) override;
  void on_end(Connection& connection, std::optional<Error> reason) override;
  void on_broken(Connection& connection, const Error& why) override;
  void on_written(Connection& connection) override;

 private:
  enum class LinkIntent : uint8_t {
    none,       // never opened
    open,       // wants a link
    dismissed,  // the peer has closed: takes a link, makes none
    closed      // takes none from the incarnation that it closed
  };
  // Two connections that are, or become, a link.
  struct Pair {
    std::array<std::shared_ptr<Connection>, 2> lanes;
    std::array<bool, 2> done{};  // welcomed; of a standing link: ended by the peer
    uint64_t token = 0;
    uint64_t last_token = 0;  // of the link before, as far as the peer knows
    Hello hello;              // the peer's
    std::string reached_at;   // where it says that it is
    [[nodiscard]] bool complete() const { return lanes[0] && lanes[1]; }
    [[nodiscard]] std::optional<size_t> lane_of(const Connection& connection) const;
    void abort();
  };

  [[nodiscard]] Runtime& runtime() const { return *host_.context().runtime; }
  [[nodiscard]] bool dials() const { return host_.hello().worker < peer_; }

  // Making a link.
  void schedule_dial(bool first);
  void dial();
  void connect_to(const Result<Addresses>& places);
  [[nodiscard]] bool tries_next_place();
  void dial_failed();
  void dial_refused();
  void stop_dialing();
  void on_welcome(size_t lane, Handshake welcome);
  void refused(const Error& reason);
  [[nodiscard]] bool must_give_way(const Handshake& hello) const;
  void answer(std::shared_ptr<Connection> connection, const Handshake& hello, HandshakeKind kind,
              std::string text);
  [[nodiscard]] Handshake say(HandshakeKind kind, size_t lane, uint64_t token) const;
  [[nodiscard]] bool means_what_it_said_before(const Handshake& handshake) const;
  void wait_for_other_half();
  void drop_arriving();
  void link_up(Pair pair);
  void watch_frames();
  static void take_text(Pair& pair, size_t lane, std::string text);

  // Losing it.
  void lost(const Error& why, bool closed_by_peer);
  void forget_link();
  void cancel(std::optional<TimerId>& timer);
  [[nodiscard]] Error describe(const Error& why) const;

  LinkHost& host_;
  const WorkerId peer_;
  std::optional<Address> address_;

  LinkIntent intent_ = LinkIntent::none;
  Error reason_;           // of closing
  Incarnation closed_to_;  // whom it closed; zero: not known yet

  bool up_ = false;
  Pair standing_;
  std::optional<Error> end_reason_;  // the peer's, of a link that ends
  std::optional<TimerId> end_timer_;
  bool above_high_water_ = false;
  uint64_t last_token_ = 0;
  Incarnation last_incarnation_;
  std::string last_greeting_;   // of that incarnation
  bool peer_knows_us_ = false;  // this incarnation of us, as long as it does not say otherwise

  Pair dialing_;
  bool hello_said_ = false;
  size_t places_ = 0;                     // numeric addresses of the peer's host, at the last look
  size_t place_ = 0;                      // of them, the one that is tried, or was reached last
  size_t tried_ = 0;                      // of them in vain, one after the other
  std::optional<TimerId> dial_timer_;     // of the next attempt
  std::optional<TimerId> dial_deadline_;  // of the present one
  uint64_t attempts_ = 0;
  uint64_t failures_ = 0;
  uint64_t refusals_ = 0;  // of them, the last in a row that were refused
  Instant refused_since_;  // the first of these
  Instant up_since_;
  bool carried_ = false;  // the standing link has brought a message

  Pair arriving_;
  std::optional<TimerId> arriving_deadline_;

  std::optional<TimerId> frame_timer_;
  std::array<uint64_t, 2> unfinished_{};  // bytes of the unfinished frames at the last look
};

}  // namespace rehearsal::real
