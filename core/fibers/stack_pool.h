#pragma once

#include <cstddef>
#include <vector>

#include "core/base/result.h"

namespace rehearsal::fibers {

class Carrier;
class StackPool;

// The memory that one fiber runs on; whoever holds the Stack may use it. It grows down from `top`
// to `bottom`, below which lies a page that faults when touched. Goes back to its pool when
// destroyed.
class Stack {
 public:
  Stack(Stack&& other) noexcept;
  Stack& operator=(Stack&& other) noexcept;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack();

  [[nodiscard]] std::byte* top() const { return top_; }
  [[nodiscard]] std::byte* bottom() const { return bottom_; }
  [[nodiscard]] size_t size() const { return static_cast<size_t>(top_ - bottom_); }
  [[nodiscard]] bool contains(const void* address) const {
    return address >= bottom_ && address < top_;
  }

  // It runs bodies on this stack, and lies at its top; made at the first call, by the thread that
  // will use it, and kept with the memory.
  [[nodiscard]] Carrier& carrier();

  // Never gives it back: what lives there lasts as long as the process, as its owners do.
  void leave();

 private:
  friend class StackPool;
  Stack(StackPool& pool, std::byte* bottom, std::byte* top, Carrier* carrier)
      : pool_(&pool), bottom_(bottom), top_(top), carrier_(carrier) {}

  void give_back();

  StackPool* pool_;  // null once moved from
  std::byte* bottom_;
  std::byte* top_;
  Carrier* carrier_;  // null: nothing has run there
};

struct StackPoolOptions {
  // Usable bytes of each stack; rounded up to whole pages.
  size_t stack_bytes = size_t{1} << 20;
  // More live stacks than this are refused. Each takes two of the process' memory mappings, of
  // which Linux allows 65,530 by default (vm.max_map_count); the rest is left to everything else.
  size_t live_max = 30'000;
  // More free stacks than this are not kept.
  size_t idle_max = 1'024;
};

// Makes stacks and keeps them for the next fiber, last in first out: the stack that was used last
// is the one still in the cache. Making one costs some 20 µs, reusing one a few ns. One pool
// belongs to one thread, and must outlive its stacks.
class StackPool {
 public:
  explicit StackPool(const StackPoolOptions& options = {});
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  // A stack, or the error `overloaded` when `live_max` stacks are in use or when the operating
  // system gives no more mappings or memory. The text says which, and what to do.
  Result<Stack> take();

  // Stacks in use.
  [[nodiscard]] size_t live() const { return live_; }
  // Free stacks that wait for their next use.
  [[nodiscard]] size_t idle() const { return idle_.size(); }

 private:
  friend class Stack;

  struct Free {
    std::byte* bottom = nullptr;
    Carrier* carrier = nullptr;
  };
  [[nodiscard]] std::byte* map();
  void unmap(std::byte* bottom);
  [[nodiscard]] Stack hand_out(const Free& free);
  void give_back(const Free& free);
  void leave(std::byte* bottom);

  const size_t page_bytes_;
  const size_t stack_bytes_;
  const size_t live_max_;
  const size_t idle_max_;
  size_t live_ = 0;
  std::vector<Free> idle_;  // never grows beyond idle_max_
};

}  // namespace rehearsal::fibers
