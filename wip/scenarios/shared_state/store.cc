#include "scenarios/shared_state/store.h"

#include <mutex>
#include <stdexcept>

#include "scenarios/shared_state/model.h"

namespace rehearsal::shared_state {

void put(CallContext& context, int64_t item) {
  Store& store = context.state<Store>();
  std::unique_lock lock(store.mutex);
  store.has_room.wait(lock, [&store] {
    return static_cast<int64_t>(store.items.size()) < store.sizes.room;
  });
  if (store.sizes.plant == Plant::deadlock)
    item = context.rpc_sync(trainer_of(item, store.sizes.trainers), &score, item);
  store.items.push_back(item);
  const auto count = static_cast<int64_t>(store.items.size());
  if (store.sizes.plant == Plant::lost_wake_up ? count == store.sizes.batch
                                               : count >= store.sizes.batch)
    store.has_batch.notify_one();
}

void finish(CallContext& context) {
  Store& store = context.state<Store>();
  const std::lock_guard lock(store.mutex);
  if (--store.producers == 0) store.has_batch.notify_all();
}

std::vector<int64_t> take(CallContext& context) {
  Store& store = context.state<Store>();
  std::unique_lock lock(store.mutex);
  const auto ready = [&store] {
    return store.producers == 0 || static_cast<int64_t>(store.items.size()) >= store.sizes.batch;
  };
  if (store.sizes.plant != Plant::no_loop)
    store.has_batch.wait(lock, ready);
  else if (!ready())
    store.has_batch.wait(lock);
  if (!ready()) throw std::logic_error("a batch was taken that is not there");
  std::vector<int64_t> batch;
  while (!store.items.empty() && static_cast<int64_t>(batch.size()) < store.sizes.batch) {
    batch.push_back(store.items.front());
    store.sum += batch.back();
    store.items.pop_front();
  }
  store.taken += static_cast<int64_t>(batch.size());
  store.has_room.notify_all();
  return batch;
}

}  // namespace rehearsal::shared_state
