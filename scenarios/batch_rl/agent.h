// The two sides of the scenario as values at their workers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/api/batcher.h"
#include "core/api/call_context.h"
#include "core/api/function_registry.h"
#include "scenarios/batch_rl/learner.h"
#include "scenarios/batch_rl/play.h"

namespace rehearsal::batch_rl {

// Used through an RRef, so its methods run one at a time, and a batch runs alone.
class Agent {
 public:
  Agent(CallContext& call, const Settings& settings);

  // Answered when all observers have asked, with one pass of the policy for all; unbatched, with a
  // pass for each. Until then there is only the future: no function runs here, and no stack is
  // held.
  Future<int64_t> select_action(int64_t observer, const torch::Tensor& state);

  [[nodiscard]] bool batched() const { return batched_; }
  [[nodiscard]] Learner& learner() { return learner_; }

 private:
  std::vector<int64_t> act(std::vector<Request> requests);

  const bool batched_;
  Learner learner_;
  Batcher<Request, int64_t> round_;
};

class Observer {
 public:
  Observer(const Settings& settings, int64_t number) : number_(number), play_(settings, number) {}

  // An episode, asking the agent for every action. Called by the agent, which it calls. Parks.
  Outcome run_episode(CallContext& call, const RRef<Agent>& agent);

  [[nodiscard]] int64_t steps() const { return play_.steps(); }
  // Whether it plays for the agent whose reference has this id: an agent that came back makes
  // observers of its own, beside those of its former life.
  [[nodiscard]] bool plays_for(const CausalId& agent) const { return agent_ == agent; }

 private:
  int64_t number_;
  Play play_;
  std::optional<CausalId> agent_;
};

void register_agent(FunctionRegistry& registry);

}  // namespace rehearsal::batch_rl
