#pragma once

#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"

namespace rehearsal::shared_state {

// Mistakes that the scenario makes when it is asked to.
enum class Plant : int64_t {
  none,
  lost_wake_up,  // a trainer is woken by the item that completes a batch, and by no other
  no_loop,       // a trainer that is woken does not look whether another one was faster
  deadlock,      // an item is scored in the store's lock, and a batch is taken in the model's
};

struct Sizes {
  int64_t room = 0;   // items that the store holds
  int64_t batch = 0;  // items that a trainer takes at once
  int64_t producers = 0;
  int64_t trainers = 0;
  Plant plant = Plant::none;
};

// The state of the store. Its functions run side by side, and take its mutex.
struct Store {
  explicit Store(const Sizes& sizes)
      : sizes(sizes), producers(sizes.producers) {}

  const Sizes sizes;
  boost::fibers::mutex mutex;
  boost::fibers::condition_variable has_room;
  boost::fibers::condition_variable has_batch;
  std::deque<int64_t> items;
  int64_t producers;  // that have not finished
  int64_t taken = 0;
  int64_t sum = 0;  // of what was taken
};

// Waits until there is room.
void put(CallContext& context, int64_t item);
// One producer has put all of its items.
void finish(CallContext& context);
// Waits for a batch; the last ones are smaller, and an empty one says that nothing is to come.
std::vector<int64_t> take(CallContext& context);

}  // namespace rehearsal::shared_state
