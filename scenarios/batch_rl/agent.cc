#include "scenarios/batch_rl/agent.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "scenarios/devices.h"

namespace rehearsal::batch_rl {

Agent::Agent(CallContext& call, const Settings& settings)
    : batched_(settings.batched),
      learner_(settings, device_or_cpu(call)),
      round_(
          call,
          {.size = settings.batched ? static_cast<uint64_t>(settings.observers) : 1, .delay = {}},
          [this](std::vector<Request> requests) { return act(std::move(requests)); }) {}

Future<int64_t> Agent::select_action(int64_t observer, const torch::Tensor& state) {
  return round_.add({observer, state});
}

// In the order of the observers, not of their arrival: the rows of a matrix product may differ in
// their last bits by their place.
std::vector<int64_t> Agent::act(std::vector<Request> requests) {
  std::vector<size_t> places(requests.size());
  std::iota(places.begin(), places.end(), 0);
  std::ranges::sort(places, {}, [&](size_t place) { return requests[place].observer; });
  std::vector<Request> in_order;
  for (const size_t place : places) in_order.push_back(std::move(requests[place]));
  for (size_t i = 0; batched_ && i < in_order.size(); ++i)
    if (in_order[i].observer != static_cast<int64_t>(i))
      throw std::logic_error("observer " + std::to_string(i) + " is not once in its batch");
  const std::vector<int64_t> actions = learner_.act(in_order);
  std::vector<int64_t> answers(actions.size());
  for (size_t i = 0; i < places.size(); ++i) answers[places[i]] = actions[i];
  return answers;
}

Outcome Observer::run_episode(CallContext& call, const RRef<Agent>& agent) {
  // Each answer waits for the slowest observer.
  const Calls unlimited = call.with_timeout(Timeout::never());
  agent_ = agent.name();
  play_.begin_episode();
  while (play_.goes_on())
    play_.step(unlimited.rpc_sync(agent, &Agent::select_action, number_, play_.state()));
  return play_.outcome();
}

void register_agent(FunctionRegistry& registry) {
  registry.type<Agent>("Agent").constructor<CallContext&, Settings>().method("select_action",
                                                                             &Agent::select_action);
  registry.type<Observer>("Observer")
      .constructor<Settings, int64_t>()
      .method("run_episode", &Observer::run_episode);
}

}  // namespace rehearsal::batch_rl
