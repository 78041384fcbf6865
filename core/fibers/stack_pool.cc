#include "core/fibers/stack_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/fibers/carrier.h"
#include "core/fibers/sanitizer.h"

namespace rehearsal::fibers {
namespace {

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

Error overloaded(std::string text) {
  return {.kind = ErrorKind::overloaded,
          .text = std::move(text),
          .worker = {},
          .function = {},
          .chain = {}};
}

}  // namespace

Stack::Stack(Stack&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      bottom_(other.bottom_),
      top_(other.top_),
      carrier_(other.carrier_) {}

Stack& Stack::operator=(Stack&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  pool_ = std::exchange(other.pool_, nullptr);
  bottom_ = other.bottom_;
  top_ = other.top_;
  carrier_ = other.carrier_;
  return *this;
}

Stack::~Stack() { give_back(); }

void Stack::give_back() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->give_back({bottom_, carrier_});
}

Carrier& Stack::carrier() {
  if (carrier_ == nullptr) carrier_ = &Carrier::make(bottom_, top_);
  return *carrier_;
}

void Stack::leave() { std::exchange(pool_, nullptr)->leave(bottom_); }

StackPool::StackPool(const StackPoolOptions& options)
    : page_bytes_(page_bytes()),
      stack_bytes_(round_up(options.stack_bytes, page_bytes_)),
      live_max_(options.live_max),
      idle_max_(options.idle_max) {
  REHEARSAL_CHECK(options.stack_bytes > 0);
  idle_.reserve(idle_max_);
}

StackPool::~StackPool() {
  REHEARSAL_CHECK(live_ == 0, live_);
  for (const Free& free : idle_) {
    allow_access(free.bottom, stack_bytes_);
    unmap(free.bottom);
  }
}

Result<Stack> StackPool::take() {
  if (live_ >= live_max_)
    return overloaded("no stack for one more fiber: " + std::to_string(live_) +
                      " are live, which is the limit; each takes two of the process' memory "
                      "mappings (vm.max_map_count). Wait for some to end, or make fewer at once");
  if (!idle_.empty()) {
    const Free free = idle_.back();
    idle_.pop_back();
    allow_access(free.bottom, stack_bytes_);
    return hand_out(free);
  }
  std::byte* bottom = map();
  if (bottom == nullptr)
    return overloaded("no stack for one more fiber: the operating system refuses memory (" +
                      std::string(std::strerror(errno)) + ") with " + std::to_string(live_) +
                      " live; the process has reached its limit of memory mappings "
                      "(vm.max_map_count; a stack takes two) or of memory");
  return hand_out({.bottom = bottom});
}

std::byte* StackPool::map() {
  void* mapping = mmap(nullptr, page_bytes_ + stack_bytes_, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  std::byte* bottom = static_cast<std::byte*>(mapping) + page_bytes_;
  if (mprotect(bottom, stack_bytes_, PROT_READ | PROT_WRITE) == 0) return bottom;
  const int reason = errno;
  unmap(bottom);
  errno = reason;
  return nullptr;
}

void StackPool::unmap(std::byte* bottom) {
  const int result = munmap(bottom - page_bytes_, page_bytes_ + stack_bytes_);
  REHEARSAL_CHECK(result == 0, errno);
}

Stack StackPool::hand_out(const Free& free) {
  ++live_;
  return {*this, free.bottom, free.bottom + stack_bytes_, free.carrier};
}

void StackPool::give_back(const Free& free) {
  REHEARSAL_CHECK(live_ > 0);
  --live_;
  if (idle_.size() >= idle_max_) {
    allow_access(free.bottom, stack_bytes_);
    unmap(free.bottom);
    return;
  }
  forbid_access(free.bottom, stack_bytes_);
  idle_.push_back(free);
}

void StackPool::leave(std::byte* bottom) {
  REHEARSAL_CHECK(live_ > 0);
  --live_;
  keep_reachable(bottom, stack_bytes_);
}

}  // namespace rehearsal::fibers
