#include "scenarios/shared_state/store.h"

#include <boost/fiber/operations.hpp>
#include <mutex>
#include <stdexcept>

#include "scenarios/shared_state/model.h"

namespace rehearsal::shared_state {
namespace {

bool all_finished(const Store& store) {
  return static_cast<int64_t>(store.finished.size()) == store.sizes.producers;
}

bool has_batch(const Store& store) {
  return all_finished(store) || static_cast<int64_t>(store.items.size()) >= store.sizes.batch;
}

// In the lock. Others come as far as the lock between two items.
std::vector<int64_t> take_batch(Store& store) {
  std::vector<int64_t> batch;
  while (!store.items.empty() && static_cast<int64_t>(batch.size()) < store.sizes.batch) {
    batch.push_back(store.items.front());
    store.sum += batch.back();
    store.items.pop_front();
    boost::this_fiber::yield();
  }
  store.taken += static_cast<int64_t>(batch.size());
  return batch;
}

bool have_taken(Store& store, int64_t items) {
  const std::lock_guard lock(store.mutex);
  return store.taken >= items;
}

}  // namespace

void put(CallContext& context, int64_t number, int64_t item) {
  Store& store = context.state<Store>();
  std::unique_lock lock(store.mutex);
  store.has_room.wait(
      lock, [&store] { return static_cast<int64_t>(store.items.size()) < store.sizes.room; });
  if (store.sizes.plant == Plant::deadlock)
    item = context.rpc_sync(trainer_of(item, store.sizes.trainers), &score, item);
  if (!store.known.insert(number).second) return;
  store.items.push_back(item);
  if (has_batch(store)) store.has_batch.notify_one();
}

void finish(CallContext& context) {
  Store& store = context.state<Store>();
  const std::lock_guard lock(store.mutex);
  store.finished.insert(context.caller_info().id);
  if (all_finished(store)) store.has_batch.notify_all();
}

std::vector<int64_t> take(CallContext& context) {
  Store& store = context.state<Store>();
  std::unique_lock lock(store.mutex);
  const auto ready = [&store] { return has_batch(store); };
  if (store.sizes.plant != Plant::no_loop)
    store.has_batch.wait(lock, ready);
  else if (!ready())
    store.has_batch.wait(lock);
  if (!ready()) throw std::logic_error("a batch was taken that is not there");
  std::vector<int64_t> batch = take_batch(store);
  if (store.sizes.plant == Plant::lost_wake_up)
    store.has_room.notify_one();
  else
    store.has_room.notify_all();
  if (store.taken >= store.watched_for) store.took.notify_all();
  return batch;
}

void see_batch(CallContext& context) {
  Store& store = context.state<Store>();
  std::unique_lock lock(store.mutex);
  if (has_batch(store)) return;
  store.has_batch.wait(lock, [&store] { return has_batch(store); });
  store.has_batch.notify_one();  // The batch is for another.
}

bool see_taken(CallContext& context, int64_t items, int64_t nanoseconds) {
  Store& store = context.state<Store>();
  const Instant begun = context.now();
  while (!have_taken(store, items) && context.now() < begun + Duration(nanoseconds))
    boost::this_fiber::yield();
  const Instant until = begun + std::chrono::hours(1);
  std::unique_lock lock(store.mutex);
  store.watched_for = items;
  return store.took.wait_until(lock,
                               std::chrono::steady_clock::time_point(until.time_since_epoch()),
                               [&store, items] { return store.taken >= items; });
}

}  // namespace rehearsal::shared_state
