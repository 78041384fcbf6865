#include "tests/real_net/support/fault_proxy.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kHeldBytesMax = 256 * 1024;
constexpr int kReceivedBytesMax = 1 << 20;

// Bounds what the system keeps of a stalled connection. By itself it gives a busy one more and
// more room, 32 MB in places, and a stall would hang on what passed before.
void bound_receive_buffer(const FileDescriptor& socket) {
  const int size = kReceivedBytesMax;
  REHEARSAL_CHECK(setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size) == 0);
}

}  // namespace

FaultProxy::FaultProxy(uint16_t target)
    : listening_(listen_on({.host = "127.0.0.1", .port = 0}).or_throw()),
      wake_up_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      port_(local_address(listening_).port),
      target_(target) {
  bound_receive_buffer(listening_);  // and so those of the connections that it takes
  thread_ = std::thread([this] { run(); });
}

FaultProxy::~FaultProxy() {
  command(Command::stop);
  thread_.join();
}

void FaultProxy::set_stalled(bool stalled) {
  stalled_ = stalled;
  command(Command::none);
}
void FaultProxy::reset_all() { command(Command::reset); }
void FaultProxy::half_close_all() { command(Command::half_close); }

void FaultProxy::command(Command command) {
  const std::lock_guard one_at_a_time(commanding_);
  obeyed_ = false;
  command_ = command;
  const uint64_t one = 1;
  REHEARSAL_CHECK(write(wake_up_.get(), &one, sizeof one) == sizeof one);
  obeyed_.wait(false);
}

void FaultProxy::run() {
  for (;;) {
    uint64_t count = 0;
    if (read(wake_up_.get(), &count, sizeof count) > 0) {
      const bool stop = command_ == Command::stop;
      obey();
      obeyed_ = true;
      obeyed_.notify_all();
      if (stop) return;
    }
    accept_all();
    bool moved = false;
    if (!stalled_)
      for (Pipe& pipe : pipes_) moved |= forward(pipe);
    std::erase_if(pipes_, [](const Pipe& pipe) { return pipe.dead; });
    connections_ = pipes_.size();
    if (!moved) wait();
  }
}

void FaultProxy::obey() {
  for (Pipe& pipe : pipes_) {
    if (command_ == Command::reset) {
      reset(pipe.ends[0]);
      reset(pipe.ends[1]);
      pipe.dead = true;
    } else if (command_ == Command::half_close) {
      pipe.ways[0].ended = true;
    }
  }
  std::erase_if(pipes_, [](const Pipe& pipe) { return pipe.dead; });
  connections_ = pipes_.size();
}

// Closing with this option sends a reset instead of an end.
void FaultProxy::reset(FileDescriptor& socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket.reset();
}

void FaultProxy::accept_all() {
  if (stalled_) return;
  for (;;) {
    FileDescriptor near(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!near.valid()) return;
    if (refusing_ || target_ == 0) {
      reset(near);
      continue;
    }
    Result<FileDescriptor> far = begin_connect({.host = "127.0.0.1", .port = target_});
    if (!far.ok()) {
      reset(near);
      continue;
    }
    bound_receive_buffer(far.value());
    Pipe& pipe = pipes_.emplace_back();
    pipe.ends[0] = std::move(near);
    pipe.ends[1] = std::move(far).value();
    for (const FileDescriptor& end : pipe.ends) set_stream_options(end.get(), {});  // no delay
  }
}

bool FaultProxy::forward(Pipe& pipe) {
  bool moved = false;
  for (const int from : {0, 1}) {
    if (!pipe.dead) moved |= read_way(pipe, from);
    if (!pipe.dead) moved |= write_way(pipe, from);
  }
  const uint64_t limit = reset_after_;
  const bool due = limit > 0 && forwarded_ >= next_reset_ + limit;
  if (due) next_reset_ = forwarded_;
  if (pipe.dead || due) {
    reset(pipe.ends[0]);
    reset(pipe.ends[1]);
    pipe.dead = true;
  } else if (pipe.ways[0].end_passed_on && pipe.ways[1].end_passed_on) {
    pipe.dead = true;
  }
  return moved;
}

bool FaultProxy::read_way(Pipe& pipe, int from) {
  Way& way = pipe.ways[from];
  if (way.ended || way.held_bytes >= kHeldBytesMax) return false;
  char bytes[32 * 1024];
  const ssize_t count = recv(pipe.ends[from].get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0) {
    const bool waits = errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
    if (!waits) pipe.dead = true;
    return false;
  }
  if (count == 0) {
    way.ended = true;
    return true;
  }
  std::atomic<bool>* const corruption = corruption_;
  if (corruption != nullptr && corruption->exchange(false)) bytes[count - 1] ^= 1;
  const auto due = Clock::now() + delay_.load();
  way.held.push_back({std::string(bytes, static_cast<size_t>(count)), due});
  way.held_bytes += static_cast<size_t>(count);
  return true;
}

bool FaultProxy::holds(const Pipe& pipe, int from) const {
  const uint64_t limit = hold_after_;
  return static_cast<int>(held_end_.load()) == from ||
         (limit > 0 && pipe.ways[from].carried >= limit);
}

bool FaultProxy::write_way(Pipe& pipe, int from) {
  Way& way = pipe.ways[from];
  const int to = pipe.ends[1 - from].get();
  bool moved = false;
  while (!way.held.empty() && !holds(pipe, from) && way.held.front().due <= Clock::now()) {
    Chunk& chunk = way.held.front();
    const uint64_t life = life_;
    const uint64_t carried = pipe.ways[0].carried + pipe.ways[1].carried;
    if (life > 0 && carried >= life) {
      pipe.dead = true;
      return moved;
    }
    const uint64_t left = life > 0 ? life - carried : UINT64_MAX;
    const ssize_t sent =
        send(to, chunk.bytes.data() + way.sent,
             std::min<uint64_t>(chunk.bytes.size() - way.sent, left), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      const bool waits = errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
      if (!waits) pipe.dead = true;
      return moved;
    }
    moved = true;
    forwarded_ += static_cast<uint64_t>(sent);
    way.held_bytes -= static_cast<size_t>(sent);
    way.sent += static_cast<size_t>(sent);
    way.carried += static_cast<uint64_t>(sent);
    if (way.sent < chunk.bytes.size()) continue;
    way.held.pop_front();
    way.sent = 0;
  }
  if (way.held.empty() && way.ended && !way.end_passed_on) {
    way.end_passed_on = true;
    shutdown(to, SHUT_WR);
  }
  return moved;
}

void FaultProxy::wait() {
  std::vector<pollfd> polled{{wake_up_.get(), POLLIN, 0}};
  if (!stalled_) {
    polled.push_back({listening_.get(), POLLIN, 0});
    for (const Pipe& pipe : pipes_) {
      for (const int end : {0, 1}) {
        const Way& in = pipe.ways[end];
        const Way& out = pipe.ways[1 - end];
        const bool reads = !in.ended && in.held_bytes < kHeldBytesMax;
        const bool writes =
            !out.held.empty() && !holds(pipe, 1 - end) && delay_.load() == Duration::zero();
        const int events = (reads ? POLLIN : 0) | (writes ? POLLOUT : 0);
        if (events != 0) polled.push_back({pipe.ends[end].get(), static_cast<short>(events), 0});
      }
    }
  }
  const bool delays = delay_.load() > Duration::zero();
  poll(polled.data(), polled.size(), stalled_ ? -1 : delays ? 1 : 50);
}

}  // namespace rehearsal::real
