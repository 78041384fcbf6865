#include "real_net/runtime/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <system_error>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

constexpr uint64_t kWakeUpId = 0;
static_assert(kWakeUpId == Poller::kNotAdded);
constexpr int kEventsPerWait = 64;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int milliseconds_rounded_up(Duration limit) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  return whole > INT_MAX ? INT_MAX : static_cast<int>(whole);
}

}  // namespace

Poller::Poller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_up_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!epoll_.valid()) throw_errno("epoll_create1");
  if (!wake_up_.valid()) throw_errno("eventfd");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeUpId}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_up_.get(), &event) != 0) throw_errno("epoll_ctl");
}

uint64_t Poller::add(int fd, uint32_t events, std::shared_ptr<IoHandler> handler) {
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    watched_.emplace(id, Watched{.fd = fd, .events = events, .handler = std::move(handler)});
  }
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return id;
  const std::lock_guard lock(mutex_);
  watched_.erase(id);
  return kNotAdded;
}

void Poller::change(uint64_t id, int fd, uint32_t events) {
  const std::lock_guard lock(mutex_);
  Watched& watched = watched_.at(id);
  REHEARSAL_CHECK(watched.fd == fd, watched.fd, fd);
  watched.quiet = false;
  set_events(id, watched, events);
}

void Poller::hold_input(uint64_t id, bool held) {
  const std::lock_guard lock(mutex_);
  const auto found = watched_.find(id);
  if (found == watched_.end() || found->second.held == held) return;
  found->second.held = held;
  set_events(id, found->second, found->second.events);
}

void Poller::quieten(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = watched_.find(id);
  if (found == watched_.end() || found->second.quiet) return;
  found->second.quiet = true;
  set_events(id, found->second, found->second.events);
}

// Under the lock: whoever removes the descriptor comes before or after.
void Poller::set_events(uint64_t id, Watched& watched, uint32_t events) {
  watched.events = events;
  // Of an edge-triggered descriptor the kernel tells only what is new.
  const uint32_t wanted = watched.held ? events & ~uint32_t{EPOLLIN} : events;
  epoll_event event{.events = watched.quiet ? uint32_t{EPOLLET} : wanted, .data = {.u64 = id}};
  const int status = epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, watched.fd, &event);
  REHEARSAL_CHECK(status == 0, errno, watched.fd);
}

void Poller::remove(uint64_t id, int fd) {
  std::shared_ptr<IoHandler> handler;  // destroyed outside of the lock
  const std::lock_guard lock(mutex_);
  const int status = epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  REHEARSAL_CHECK(status == 0, errno, fd);
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  handler = std::move(found->second.handler);
  watched_.erase(found);
}

bool Poller::wait(Duration limit) {
  std::array<epoll_event, kEventsPerWait> events;
  const int count = wait_for_events(events.data(), kEventsPerWait, limit);
  for (int i = 0; i < count; ++i) {
    const uint64_t id = events[i].data.u64;
    if (id == kWakeUpId) {
      drain_wake_up();
    } else if (const std::shared_ptr<IoHandler> handler = take_note(id, events[i].events)) {
      handler->on_ready(events[i].events);
    }
  }
  return count > 0;
}

int Poller::wait_for_events(epoll_event* events, int count, Duration limit) {
  waits_.fetch_add(1, std::memory_order_relaxed);
  if (limit <= Duration::zero()) return epoll_wait(epoll_.get(), events, count, 0);
  if (limit == Duration::max()) return epoll_wait(epoll_.get(), events, count, -1);
  if (precise_.load(std::memory_order_relaxed)) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec relative{.tv_sec = seconds.count(), .tv_nsec = (limit - seconds).count()};
    const int ready = epoll_pwait2(epoll_.get(), events, count, &relative, nullptr);
    if (ready >= 0 || errno == EINTR) return ready;
    precise_.store(false, std::memory_order_relaxed);
  }
  return epoll_wait(epoll_.get(), events, count, milliseconds_rounded_up(limit));
}

std::shared_ptr<IoHandler> Poller::take_note(uint64_t id, uint32_t events) {
  const std::lock_guard lock(mutex_);
  const auto found = watched_.find(id);
  if (found == watched_.end()) return nullptr;
  Watched& watched = found->second;
  const bool lasts = (watched.events & EPOLLONESHOT) == 0;
  if (lasts && (events & watched.events & EPOLLOUT) != 0)
    set_events(id, watched, watched.events & ~uint32_t{EPOLLOUT});
  return watched.handler;
}

void Poller::interrupt() {
  const uint64_t one = 1;
  // It fails only when the counter is full, and then the poller wakes all the same.
  [[maybe_unused]] const ssize_t written = write(wake_up_.get(), &one, sizeof one);
}

void Poller::drain_wake_up() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read_bytes = read(wake_up_.get(), &count, sizeof count);
}

}  // namespace rehearsal::real
