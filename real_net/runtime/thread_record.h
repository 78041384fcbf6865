#pragma once

#include <pthread.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/runtime.h"
#include "core/base/stream_set.h"
#include "core/fibers/fiber.h"
#include "core/fibers/thread_state.h"
#include "real_net/runtime/polling_role.h"

namespace rehearsal::real {

struct ThreadRecord;
struct FiberRecord;

// The target of a Waiter's slot: the parked thread or fiber.
struct Parked {
  ThreadRecord* thread = nullptr;
  FiberRecord* fiber = nullptr;  // null: the thread's own stack
  Waiter* waiter = nullptr;      // null: not parked. Guarded by the runtime's lock
};

// An execution with a stack of its own. Pinned to its thread from the start.
struct FiberRecord {
  Execution* execution = nullptr;
  std::string label;  // the execution's, which may be gone before this
  Task body;
  std::unique_ptr<fibers::Fiber> fiber;   // made when it is resumed first
  std::optional<CurrentDevices> devices;  // what is current on it; none: there are no devices
  Parked parked;
  size_t place = 0;             // among its thread's live ones
  bool told_stackless = false;  // it was said that there is no stack for it
};

// User code that the thread which leaves the strand runs: to completion, or, on a stack of its own,
// until it parks.
struct InlineBody {
  Execution* execution = nullptr;
  Task body;
  bool has_stack = false;
};

// The runtime's state for one thread. Members are the thread's own, unless marked.
struct ThreadRecord {
  PollingRole::Seat seat;
  Parked parked;

  bool on_strand = false;                // runs strand tasks
  bool in_inline = false;                // runs an inline body
  bool polling = false;                  // has the polling role
  bool looks_again = false;              // waits: will look at what is to be done before it sleeps
  bool discarding = false;               // destroys closures
  bool beginning = false;                // a body begins that runs at once, and has not parked yet
  bool comes_again = false;              // waits again and again, until the runtime ends
  fibers::ThreadState strand_state;      // LibTorch's, while the thread is on the strand
  fibers::ThreadState inline_state;      // the same, in an inline body
  std::vector<Task> batch;               // strand tasks being run
  std::vector<Task> garbage;             // closures to destroy off the strand
  std::vector<Task> dying;               // of them, those being destroyed
  std::deque<InlineBody> inline_bodies;  // that this thread's turn on the strand has started
  PollingRole::Nudges nudges;            // to carry out once off the strand

  // Executions. The containers are guarded by the runtime's lock.
  bool in_pool = false;  // the thread has no work but executions
  FiberRecord* running = nullptr;
  std::deque<FiberRecord*> runnable;
  std::deque<FiberRecord*> stackless;  // would be runnable if there were a stack
  std::vector<std::unique_ptr<FiberRecord>> live;
  std::unique_ptr<fibers::StackPool> stacks;
};

// The records of all threads that have ever entered one runtime, found by the calling thread. A
// record is used again after its thread has ended, and is freed with the table. The threads must
// not be inside the runtime when it is destroyed.
class ThreadTable {
 public:
  ThreadTable();
  ~ThreadTable();
  ThreadTable(const ThreadTable&) = delete;
  ThreadTable& operator=(const ThreadTable&) = delete;

  // Of the calling thread; made at its first call.
  [[nodiscard]] ThreadRecord& current();
  // Null if the calling thread has never entered.
  [[nodiscard]] ThreadRecord* find() const;

  // A record for a thread that is about to be started; that thread binds itself to it.
  [[nodiscard]] ThreadRecord& reserve() { return claim().record; }
  void bind(ThreadRecord& reserved);

  // Of all threads; the caller holds the lock of what the body touches, or sees to it that they
  // hold still.
  template <class Body>
  void for_each(Body body) const {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : entries_) body(entry->record);
  }

 private:
  struct Entry {
    ThreadRecord record;
    ThreadTable* table = nullptr;
    bool free = false;
  };
  [[nodiscard]] Entry& claim();
  static void on_thread_end(void* entry);

  pthread_key_t key_{};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace rehearsal::real
