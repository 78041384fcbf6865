#include "scenarios/shared_state/model.h"

#include <boost/fiber/operations.hpp>
#include <mutex>
#include <stdexcept>

namespace rehearsal::shared_state {
namespace {

void learn(Model& model, const std::vector<int64_t>& batch) {
  for (const int64_t item : batch) {
    model.first_half += item;
    boost::this_fiber::yield();
    model.second_half += item;
  }
}

}  // namespace

std::string trainer_of(int64_t item, int64_t trainers) {
  return "trainer" + std::to_string(item % trainers);
}

int64_t score(CallContext& context, int64_t item) {
  Model& model = context.state<Model>();
  const std::lock_guard lock(model.mutex);
  if (model.first_half != model.second_half)
    throw std::logic_error("half a change of the model was seen");
  return 2 * item + 1;
}

void train(Worker& worker, Plant plant) {
  Model& model = worker.state<Model>();
  for (;;) {
    std::unique_lock lock(model.mutex, std::defer_lock);
    if (plant == Plant::deadlock) lock.lock();
    const std::vector<int64_t> batch = worker.rpc_sync("store", &take);
    if (batch.empty()) return;
    if (!lock.owns_lock()) lock.lock();
    learn(model, batch);
  }
}

}  // namespace rehearsal::shared_state
