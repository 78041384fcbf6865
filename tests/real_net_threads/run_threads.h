#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace rehearsal::real {

// Runs body(0), body(1), …, each on a thread of its own, and waits for all.
inline void run_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rehearsal::real
