#include "real_net/gloo/orders.h"

namespace rehearsal::real {

void Orders::add(Order order) {
  const Lock lock(mutex_);
  if (given_up_) return;
  orders_.push_back(std::move(order));
  changed_.notify_all();
}

std::optional<Orders::Order> Orders::next() {
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return given_up_ || !orders_.empty(); });
  if (given_up_) return std::nullopt;
  Order order = std::move(orders_.front());
  orders_.pop_front();
  return order;
}

void Orders::give_up() {
  std::deque<Order> dropped;  // dies after the lock was given back
  const Lock lock(mutex_);
  given_up_ = true;
  dropped.swap(orders_);
  changed_.notify_all();
}

bool Orders::given_up() const {
  const Lock lock(mutex_);
  return given_up_;
}

void Orders::tell(Done done, MaybeError error) {
  {
    const Lock lock(mutex_);
    if (given_up_) return;
    telling_ = true;
  }
  done(std::move(error));
  const Lock lock(mutex_);
  telling_ = false;
  changed_.notify_all();
}

void Orders::wait_while_telling() {
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return !telling_; });
}

void Orders::end() {
  const Lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool Orders::wait_for_end(std::chrono::steady_clock::time_point deadline) {
  Lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return ended_; });
}

}  // namespace rehearsal::real
