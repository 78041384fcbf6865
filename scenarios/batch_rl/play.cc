#include "scenarios/batch_rl/play.h"

#include "command_line/scenario.h"
#include "core/base/hash.h"

namespace rehearsal::batch_rl {

Play::Play(const Settings& settings, int64_t observer)
    : steps_(static_cast<size_t>(settings.steps)),
      cart_pole_(mix(settings.seed, static_cast<uint64_t>(observer))) {}

void Play::begin_episode() {
  rewards_.clear();
  returns_.clear();
  first_ = 0;
  begin_pole();
}

void Play::begin_pole() { observation_ = cart_pole_.reset(); }

void Play::step(int64_t action) {
  const auto step = cart_pole_.step(static_cast<models::CartPole::Action>(action));
  ++count_;
  observation_ = step.observation;
  rewards_.push_back(step.reward);
  if (!step.done && goes_on()) return;
  const auto ended = static_cast<std::ptrdiff_t>(returns_.size());
  const std::vector<double> of_pole(rewards_.begin() + ended, rewards_.end());
  const std::vector<double> returns = models::discounted_returns(of_pole);
  if (ended == 0) first_ = static_cast<int64_t>(of_pole.size());
  returns_.insert(returns_.end(), returns.begin(), returns.end());
  begin_pole();
}

Episode end_episode(Learner& learner, const std::vector<Outcome>& outcomes) {
  const double last_reward = learner.learn(outcomes);
  return {last_reward, digest_of(learner.policy().parameters()), learner.solved()};
}

TrainingAlone::TrainingAlone(const Settings& settings) : settings_(settings), learner_(settings) {
  for (int64_t i = 0; i < settings.observers; ++i) plays_.emplace_back(settings, i);
}

Episode TrainingAlone::next_episode() {
  for (Play& play : plays_) play.begin_episode();
  for (int64_t step = 0; step < settings_.steps; ++step) {
    const std::vector<int64_t> actions = act();
    for (size_t i = 0; i < plays_.size(); ++i) plays_[i].step(actions[i]);
  }
  std::vector<Outcome> outcomes;
  for (const Play& play : plays_) outcomes.push_back(play.outcome());
  return end_episode(learner_, outcomes);
}

std::vector<int64_t> TrainingAlone::act() {
  std::vector<Request> requests;
  for (const Play& play : plays_)
    requests.push_back({static_cast<int64_t>(requests.size()), play.state()});
  if (settings_.batched) return learner_.act(requests);
  std::vector<int64_t> actions;
  for (const Request& request : requests) actions.push_back(learner_.act({request}).front());
  return actions;
}

}  // namespace rehearsal::batch_rl
