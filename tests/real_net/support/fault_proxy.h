#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "real_net/tcp/socket.h"

namespace rehearsal::real {

// Stands between two ends of TCP connections on loopback and breaks them on demand. It has a thread
// of its own, which is bounded in what it holds, the system's buffers included: a stalled way takes
// some megabytes, and no more. Any thread.
class FaultProxy {
 public:
  // Forwards what connects to `port()` to `target` on loopback. Zero: nobody is there yet.
  explicit FaultProxy(uint16_t target = 0);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }
  void set_target(uint16_t target) { target_ = target; }

  // Nothing is forwarded, and nothing is said.
  void set_stalled(bool stalled);
  // Connections are reset as soon as they are made.
  void set_refusing(bool refusing) { refusing_ = refusing; }
  // Data beyond so many bytes of one way through a connection is held until this is zero.
  void set_hold_after(uint64_t bytes) { hold_after_ = bytes; }
  // Holds all that this end of each connection says, until another is named or none. The bytes that
  // are held when a connection is reset are lost.
  enum class End : int { dialer, target, none };
  void hold_from(End end) { held_end_ = end; }
  // Each piece of data is held for this long.
  void set_delay(Duration delay) { delay_ = delay; }
  // Every `bytes` forwarded, the connection that carried them is reset; zero: never.
  void set_reset_after(uint64_t bytes) { reset_after_ = bytes; }
  // Every connection is reset once it has carried exactly so many bytes, both ways together; zero:
  // never.
  void set_life(uint64_t bytes) { life_ = bytes; }

  // Whenever `flag` is set, it is cleared and the last bit of what is read next flips. Several
  // proxies may share a flag; it outlives them.
  void set_corruption(std::atomic<bool>& flag) { corruption_ = &flag; }

  // Both returned when done.
  void reset_all();
  // Ends the direction towards the target in good order; the other one goes on.
  void half_close_all();

  [[nodiscard]] size_t connections() const { return connections_; }
  [[nodiscard]] uint64_t forwarded_bytes() const { return forwarded_; }

 private:
  struct Chunk {
    std::string bytes;
    std::chrono::steady_clock::time_point due;
  };
  struct Way {
    std::deque<Chunk> held;
    size_t held_bytes = 0;
    size_t sent = 0;  // of the first chunk
    uint64_t carried = 0;
    bool ended = false;
    bool end_passed_on = false;
  };
  struct Pipe {
    FileDescriptor ends[2];
    Way ways[2];  // [0]: from ends[0] to ends[1]
    bool dead = false;
  };
  enum class Command : uint8_t { none, reset, half_close, stop };

  void run();
  void command(Command command);
  void obey();
  void accept_all();
  bool forward(Pipe& pipe);
  bool read_way(Pipe& pipe, int from);
  bool write_way(Pipe& pipe, int from);
  bool holds(const Pipe& pipe, int from) const;
  void wait();
  static void reset(FileDescriptor& socket);

  FileDescriptor listening_;
  FileDescriptor wake_up_;
  uint16_t port_ = 0;
  std::atomic<uint16_t> target_;
  std::atomic<bool> stalled_{false};
  std::atomic<bool> refusing_{false};
  std::atomic<End> held_end_{End::none};
  std::atomic<Duration> delay_{Duration::zero()};
  std::atomic<uint64_t> reset_after_{0};
  std::atomic<uint64_t> hold_after_{0};
  std::atomic<uint64_t> life_{0};
  std::atomic<std::atomic<bool>*> corruption_{nullptr};
  std::atomic<size_t> connections_{0};
  std::atomic<uint64_t> forwarded_{0};
  std::atomic<Command> command_{Command::none};
  std::atomic<bool> obeyed_{false};
  std::mutex commanding_;  // one command at a time
  std::list<Pipe> pipes_;  // the thread's
  uint64_t next_reset_ = 0;
  std::thread thread_;
};

}  // namespace rehearsal::real
