#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "core/collectives/group_carrier.h"

namespace rehearsal::real {

// The operations that one carrier has been given, between those who give them and the thread that
// carries them out. Any thread.
class Orders {
 public:
  using Done = UniqueFunction<void(MaybeError)>;
  struct Order {
    CarriedOperation operation;
    Done done;
  };

  // Dropped if it was given up.
  void add(Order order);
  // Waits for the next; nothing once it was given up.
  [[nodiscard]] std::optional<Order> next();
  // Nothing more is begun, and nobody told. Never blocks.
  void give_up();
  [[nodiscard]] bool given_up() const;

  // Calls `done` unless it was given up.
  void tell(Done done, MaybeError error);
  // Waits until nobody is being told. After `give_up`, so that nobody ever is.
  void wait_while_telling();

  // The thread has ended; waits for that, until then at most.
  void end();
  [[nodiscard]] bool wait_for_end(std::chrono::steady_clock::time_point deadline);

 private:
  using Lock = std::unique_lock<std::mutex>;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Order> orders_;
  bool given_up_ = false;
  bool telling_ = false;
  bool ended_ = false;
};

}  // namespace rehearsal::real
