#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/base/time.h"
#include "real_net/runtime/file_descriptor.h"

struct epoll_event;

namespace rehearsal::real {

// Told when a file descriptor is ready. Called by the thread that polls, off the strand.
class IoHandler {
 public:
  virtual ~IoHandler() = default;
  // `events` are epoll's.
  virtual void on_ready(uint32_t events) = 0;
};

// The network's events: an epoll instance and an eventfd that ends its wait. `wait` is called by
// one thread at a time, the rest by any thread at any time.
class Poller {
 public:
  // Throws std::system_error when the process has no file descriptor left.
  Poller();

  // The handler is kept alive until `remove`, and during a call of it. Events are reported as long
  // as they last (level-triggered); but EPOLLOUT once, until `change` asks for it again: whoever
  // writes comes to it later than this thread, which would do nothing else meanwhile. kNotAdded if
  // the kernel has no room for another.
  static constexpr uint64_t kNotAdded = 0;
  [[nodiscard]] uint64_t add(int fd, uint32_t events, std::shared_ptr<IoHandler> handler);
  void change(uint64_t id, int fd, uint32_t events);
  // While `held`, bytes that come (EPOLLIN) are not reported, whatever `change` asks for. No effect
  // on what has been removed.
  void hold_input(uint64_t id, bool held);
  // Events that last and cannot be declined (EPOLLHUP, EPOLLERR) are reported once more at most,
  // until `change`: for a handler that has passed them on and would be called again and again until
  // the strand comes to it. No effect on what has been removed.
  void quieten(uint64_t id);
  // Before the descriptor is closed. A call of the handler may still be under way.
  void remove(uint64_t id, int fd);

  // Waits until a descriptor is ready, `interrupt` is called or `limit` has passed (max: no limit),
  // and calls the handlers of what is ready. Whether anything was.
  bool wait(Duration limit);

  void interrupt();

  // System calls made to wait and to interrupt, for measurements.
  [[nodiscard]] uint64_t wait_count() const { return waits_.load(std::memory_order_relaxed); }

 private:
  struct Watched {
    int fd = -1;
    uint32_t events = 0;
    std::shared_ptr<IoHandler> handler;
    bool held = false;   // see hold_input
    bool quiet = false;  // see quieten
  };

  [[nodiscard]] int wait_for_events(epoll_event* events, int count, Duration limit);
  // The handler of what is ready, if it is still watched.
  [[nodiscard]] std::shared_ptr<IoHandler> take_note(uint64_t id, uint32_t events);
  void set_events(uint64_t id, Watched& watched, uint32_t events);
  void drain_wake_up();

  FileDescriptor epoll_;
  FileDescriptor wake_up_;
  std::atomic<uint64_t> waits_{0};
  std::atomic<bool> precise_{true};  // the kernel has epoll_pwait2

  std::mutex mutex_;  // guards what follows
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, Watched> watched_;
};

}  // namespace rehearsal::real
