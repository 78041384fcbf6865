#include "core/api/worker_state.h"

#include <algorithm>

#include "core/api/worker.h"
#include "core/base/result.h"
#include "core/base/symbols.h"
#include "core/node/ended_states.h"

namespace rehearsal {

void WorkerStates::make(const std::vector<StateMaker>& makers, Worker& worker) {
  for (const StateMaker& maker : makers) {
    State& made = all_.emplace_back(
        State{.type = maker.type, .value = maker.make(worker), .death_label = maker.death_label});
    made.monitor->set_streams(StreamSet::current(worker.caller()->strand()->devices()));
  }
}

void WorkerStates::end() {
  while (!all_.empty()) all_.pop_back();
}

WorkerStates::State WorkerStates::take_last() {
  State last = std::move(all_.back());
  all_.pop_back();
  return last;
}

const WorkerStates::State* WorkerStates::find(std::type_index type) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [type](const State& state) { return state.type == type; });
  return found == all_.end() ? nullptr : &*found;
}

const WorkerStates::State& WorkerStates::at(const std::type_info& type,
                                            const std::string& worker) const {
  if (const State* found = find(type)) return *found;
  if (!all_.empty() && all_.front().type == std::type_index(typeid(EndedStates)))
    throw RpcError({.kind = ErrorKind::peer_lost,
                    .text = "worker '" + worker + "' shuts down: its state has ended",
                    .worker = worker});
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "worker '" + worker + "' has no state of type " + type_name(type) +
                          ": give it one where the program declares the worker: "
                          "program.worker(\"" +
                          worker + "\", …).state<T>(…)",
                  .worker = worker});
}

}  // namespace rehearsal
