#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/runtime.h"
#include "real_net/runtime/poller.h"
#include "real_net/tcp/frame_parser.h"
#include "real_net/tcp/frame_writer.h"
#include "real_net/tcp/handshake.h"

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

// The state that the connections of one transport share.
struct ConnectionContext {
  Runtime* runtime = nullptr;
  Poller* poller = nullptr;
  BufferPool* pool = nullptr;
  std::atomic<uint64_t> reads{0};   // system calls, for measurements
  std::atomic<uint64_t> writes{0};  // the same
};

// One TCP connection. Two halves that never wait for each other: the thread that polls reads and
// parses, off the strand; the strand writes, and decides. All methods but `on_ready` are called on
// the strand. Closed by `abort`; the descriptor lives until the polling thread has let go of it.
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

  void on_ready(uint32_t events) override;

 private:
  // Set by both halves, each time the other one rests.
  enum class Mode : uint8_t { rest, connect, handshake, frames, discard };
  struct Arrivals;

  Connection(ConnectionContext& context, FileDescriptor fd, ConnectionOwner& owner);

  // The strand.
  void enter(Mode mode);
  void update_interest();
  void on_writable();
  void take(Arrivals& arrivals);
  void break_off(const Error& why);

  // The polling thread.
  void read_handshake(Arrivals& arrivals);
  void read_frames(Arrivals& arrivals);
  void read_to_end(Arrivals& arrivals);
  // Bytes read; 0 if the stream has ended or must rest, which is noted in `arrivals`.
  size_t receive(std::span<iovec> room, Arrivals& arrivals);

  ConnectionContext& context_;
  const FileDescriptor fd_;
  std::atomic<Mode> mode_{Mode::rest};

  // The strand's.
  ConnectionOwner* owner_;
  uint64_t poll_id_ = Poller::kNotAdded;
  uint32_t interest_ = 0;
  FrameWriter writer_;
  bool blocked_ = false;  // waits for room in the kernel, or for its next turn
  bool end_wanted_ = false;
  bool end_sent_ = false;
  bool aborted_ = false;

  // The polling thread's.
  std::string text_;
  std::optional<HandshakeHeader> header_;
  std::optional<FrameParser> parser_;
  Lane lane_ = Lane::small;
};

}  // namespace rehearsal::real
