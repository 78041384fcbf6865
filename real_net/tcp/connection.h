#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/runtime.h"
#include "real_net/auth/credentials.h"
#include "real_net/runtime/poller.h"
#include "real_net/tcp/frame_parser.h"
#include "real_net/tcp/frame_writer.h"
#include "real_net/tcp/handshake.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {

class Connection;

// The listener of a connection. Called on the strand.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual void on_connected(Connection& connection) = 0;  // of one that we began
  virtual void on_handshake(Connection& connection, Handshake handshake) = 0;
  virtual void on_frames(Connection& connection, std::vector<Frame> frames) = 0;
  // The peer sends nothing more. `reason`: it closed the link for good.
  virtual void on_end(Connection& connection, std::optional<Error> reason) = 0;
  // It is broken, and has been aborted. Nothing else follows.
  virtual void on_broken(Connection& connection, const Error& why) = 0;
  // The kernel has taken more of what waited in the writer.
  virtual void on_written(Connection& connection) = 0;
};

// Tells of one thing that goes wrong with connections: at once, and then ever more rarely, however
// often it happens. On the strand.
class RareReport {
 public:
  using Tell = std::function<void(const Error&)>;
  void set_tell(Tell tell) { tell_ = std::move(tell); }
  void note(const Error& error, Instant now);

 private:
  Tell tell_;  // may be null
  Instant next_{};
  Duration apart_{};
};

// The state that the connections of one transport share.
struct ConnectionContext {
  Runtime* runtime = nullptr;
  Poller* poller = nullptr;
  BufferPool* pool = nullptr;
  std::atomic<uint64_t> reads{0};      // system calls, for measurements
  std::atomic<uint64_t> writes{0};     // the same
  Credentials* credentials = nullptr;  // null: nobody proves anything
  // Whether the text of a hello will be of use: it may be long, and if not, it is not read, nor is
  // the header's checksum looked at. Asked by the polling thread. Null: it always is.
  std::function<bool(const Handshake&)> wants_text;
  RareReport shortage;  // no descriptor, or no memory: errors of kind overloaded
  RareReport unproven;  // who connects, or answers, is not of this group

  void note_shortage(const Error& error) {
    if (error.kind == ErrorKind::overloaded) shortage.note(error, runtime->now());
  }
};

// One TCP connection. Two halves that never wait for each other: the thread that polls reads and
// parses, off the strand; the strand writes, and decides. All methods but `on_ready` are called on
// the strand. Closed by `abort`; the descriptor lives until the polling thread has let go of it.
//
// With credentials all that it carries is under TLS. The polling thread shakes hands, before
// anything else is read or written: what a stranger says gets no further.
class Connection final : public IoHandler, public std::enable_shared_from_this<Connection> {
 public:
  // Reads nothing before `expect_handshake`. `connecting`: on_connected tells when it stands.
  static std::shared_ptr<Connection> make(ConnectionContext& context, FileDescriptor fd,
                                          ConnectionOwner& owner, bool connecting);
  ~Connection() override = default;

  void set_owner(ConnectionOwner& owner) { owner_ = &owner; }

  // Choose what the connection reads next. After a handshake, reading rests.
  void expect_handshake();
  void expect_frames(Lane lane);
  // Reads on, but only to see the end: what still comes is dropped.
  void expect_end();

  [[nodiscard]] FrameWriter& writer() { return writer_; }
  // Writes what the kernel takes, `bytes_max` at most; the rest follows when it takes more. If the
  // connection is found broken, that is reported later.
  void flush(uint64_t bytes_max);
  // Says that nothing more is sent, once the writer is empty.
  void end_output();

  void abort();
  [[nodiscard]] bool aborted() const { return aborted_; }
  // Not zero while a frame has come in part; another number after each byte.
  [[nodiscard]] uint64_t unfinished_frame() const {
    return unfinished_frame_.load(std::memory_order_relaxed);
  }
  // Of one that we began: nobody listens there.
  [[nodiscard]] bool refused() const { return refused_; }
  // Whether the other end is on this machine.
  [[nodiscard]] bool stays_here() const { return real::stays_here(fd_); }
  // Whether the other end may speak for this worker; see SecureChannel. Always without credentials.
  [[nodiscard]] bool proves(const std::string& worker) const;

  void on_ready(uint32_t events) override;

 private:
  // Set by both halves, each time the other one rests.
  enum class Mode : uint8_t { rest, connect, secure, handshake, frames, discard };
  struct Arrivals;

  Connection(ConnectionContext& context, FileDescriptor fd, ConnectionOwner& owner);

  // The strand.
  void enter(Mode mode);
  void update_interest();
  void read_what_is_here();
  [[nodiscard]] bool has_output() const {
    return writer_.can_leave() || sealed_sent_ < sealed_.size();
  }
  [[nodiscard]] Status seal(uint64_t bytes_max);
  void drop_output();
  ssize_t send_plain(uint64_t bytes_max);
  ssize_t send_sealed();
  void on_connect_ended();
  void on_secured();
  void on_writable();
  void take(Arrivals& arrivals);
  void note_taken(uint64_t bytes);
  void break_off(const Error& why);

  // The polling thread.
  void pause();
  void shake_hands(Arrivals& arrivals);
  void read_handshake(Arrivals& arrivals);
  [[nodiscard]] bool may_be_read(const Handshake& hello) const;
  void read_frames(Arrivals& arrivals);
  void read_to_end(Arrivals& arrivals);
  // Bytes read; 0 if the stream has ended or must rest, which is noted in `arrivals`. Fewer than
  // there is room for: the kernel has no more.
  size_t receive(std::span<iovec> room, Arrivals& arrivals);
  size_t receive_plain(std::span<iovec> room, Arrivals& arrivals);
  size_t receive_secured(std::span<iovec> room, Arrivals& arrivals);
  [[nodiscard]] bool feed_channel(Arrivals& arrivals);

  // More bytes of frames are not read while the strand has yet to take so many.
  static constexpr uint64_t kUnderWayMax = uint64_t{1} << 20;

  ConnectionContext& context_;
  const FileDescriptor fd_;
  std::atomic<uint64_t> poll_id_{Poller::kNotAdded};
  std::atomic<Mode> mode_{Mode::rest};
  std::atomic<uint64_t> unfinished_frame_{0};
  // Of frames that were given to the strand and that it has not taken. The polling thread looks at
  // it after it has set `paused_`, the strand at `paused_` after it has lowered this: one of them
  // sees both.
  std::atomic<uint64_t> under_way_{0};
  std::atomic<bool> paused_{false};  // input is held back at the poller until the strand has taken

  // The strand's.
  ConnectionOwner* owner_;
  uint32_t interest_ = 0;
  FrameWriter writer_;
  bool blocked_ = false;  // waits for room in the kernel, or for its next turn
  bool end_wanted_ = false;
  bool end_sent_ = false;
  bool aborted_ = false;
  bool refused_ = false;
  bool connecting_ = false;  // we began it
  bool secured_ = false;     // the other end has proved itself
  std::string sealed_;       // encrypted, and sent up to:
  size_t sealed_sent_ = 0;
  std::string gathered_;  // small pieces that become one record

  // Made by the polling thread, which the strand follows once it has `secured_`.
  std::unique_ptr<SecureChannel> channel_;

  // The polling thread's.
  std::string text_;
  std::optional<HandshakeHeader> header_;
  std::optional<FrameParser> parser_;
  uint64_t bytes_read_ = 0;
  uint64_t unposted_ = 0;     // of them, not counted as under way yet
  uint64_t proof_bytes_ = 0;  // read before the other end has proved itself
  uint64_t fed_in_vain_ = 0;  // to the channel, since it has last given data
  bool told_broken_ = false;
  Lane lane_ = Lane::small;
};

}  // namespace rehearsal::real
