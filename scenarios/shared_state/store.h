#pragma once

#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/mutex.hpp>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"

namespace rehearsal::shared_state {

// Mistakes that the scenario makes when it is asked to.
enum class Plant : int64_t {
  none,
  lost_wake_up,  // a batch makes room for several items, and wakes one producer
  no_loop,       // a trainer that is woken does not look whether another one was faster
  deadlock,      // an item is scored in the store's lock, and a batch is taken in the model's
};

struct Sizes {
  int64_t room = 0;   // items that the store holds
  int64_t batch = 0;  // items that a trainer takes at once
  int64_t producers = 0;
  int64_t trainers = 0;
  Duration patience{};  // of those who watch the store
  Plant plant = Plant::none;
};

// The state of the store. Its functions run side by side, and take its mutex.
struct Store {
  explicit Store(const Sizes& sizes) : sizes(sizes) {}

  const Sizes sizes;
  boost::fibers::mutex mutex;
  boost::fibers::condition_variable has_room;
  boost::fibers::condition_variable has_batch;
  boost::fibers::condition_variable took;  // as many items as are watched for
  std::deque<int64_t> items;
  std::set<int64_t> known;      // numbers of all items so far
  std::set<WorkerId> finished;  // producers
  int64_t taken = 0;
  int64_t sum = 0;          // of what was taken
  int64_t watched_for = 0;  // so many items
};

// Waits until there is room. One that was put before is not put again: a producer that has crashed
// begins anew.
void put(CallContext& context, int64_t number, int64_t item);
// One producer has put all of its items.
void finish(CallContext& context);
// Waits for a batch; the last ones are smaller, and an empty one says that nothing is to come.
std::vector<int64_t> take(CallContext& context);

// For those who watch the store, and give up after a while. Waits for a batch, and leaves it to
// others …
void see_batch(CallContext& context);
// … or until so many items have been taken, for an hour at most: asks again and again for a while
// before it waits. Whether they have.
bool see_taken(CallContext& context, int64_t items, int64_t nanoseconds);

}  // namespace rehearsal::shared_state
