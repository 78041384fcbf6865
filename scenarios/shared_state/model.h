#pragma once

#include <boost/fiber/mutex.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "scenarios/shared_state/store.h"

namespace rehearsal::shared_state {

// The state of a trainer: its main changes it, and its function reads it for producers. Both halves
// belong together, and something else may run between their changes.
struct Model {
  boost::fibers::mutex mutex;
  int64_t first_half = 0;
  int64_t second_half = 0;
};

// The trainer that scores this item.
[[nodiscard]] std::string trainer_of(int64_t item, int64_t trainers);

// An item's value, which does not depend on what the trainer has learned, whose model it reads.
int64_t score(CallContext& context, int64_t item);

// In a trainer's main: takes batches from the store, and learns from them, until nothing is to
// come.
void train(Worker& worker, Plant plant);

}  // namespace rehearsal::shared_state
