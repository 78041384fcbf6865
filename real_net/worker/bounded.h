#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <thread>

namespace rehearsal::real {

// Keeps SIGPIPE from the calling thread, and from the threads that it starts from then on. A
// library that writes to a socket whose other end has gone is told by an errno then; what the rest
// of the process does with the signal is its own affair.
inline void keep_broken_pipes_away() {
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
}

// Runs `work` on a thread of its own and waits for it until `deadline`; calls `meanwhile`, if it is
// one, now and then while it waits. Passes on what `work` throws. Nothing if it has not ended in
// time: the thread is left to itself then, so `work` owns all that it uses. For calls of a system
// or a library that have no time limit: looking up a name, reading from a program that is silent.
// Neither `work` nor the threads that it starts get SIGPIPE: a store of c10d that is made here does
// not let whoever hangs up on it end the process. Throws std::system_error if there is no thread.
template <class Value>
[[nodiscard]] std::optional<Value> within(std::chrono::steady_clock::time_point deadline,
                                          std::function<Value()> work,
                                          const std::function<void()>& meanwhile = nullptr) {
  constexpr auto kLooksApart = std::chrono::milliseconds(100);
  std::packaged_task<Value()> task(std::move(work));
  std::future<Value> value = task.get_future();
  std::thread thread([task = std::move(task)]() mutable {
    keep_broken_pipes_away();
    task();
  });
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    const auto limit = meanwhile ? std::min(deadline, now + kLooksApart) : deadline;
    if (value.wait_until(limit) == std::future_status::ready) break;
    if (limit == deadline) {
      thread.detach();
      return std::nullopt;
    }
    meanwhile();
  }
  thread.join();
  return value.get();
}

}  // namespace rehearsal::real
