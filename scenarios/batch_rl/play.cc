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

std::vector<Episode> train_alone(const Settings& settings) {
  Learner learner(settings);
  std::vector<Play> plays;
  for (int64_t i = 0; i < settings.observers; ++i) plays.emplace_back(settings, i);
  std::vector<Episode> episodes;
  while (static_cast<int64_t>(episodes.size()) < settings.episodes && !learner.solved()) {
    for (Play& play : plays) play.begin_episode();
    for (int64_t step = 0; step < settings.steps; ++step) {
      std::vector<Request> requests;
      for (int64_t i = 0; i < settings.observers; ++i)
        requests.push_back({i, plays[static_cast<size_t>(i)].state()});
      std::vector<int64_t> actions;
      if (settings.batched)
        actions = learner.act(requests);
      else
        for (const Request& request : requests) actions.push_back(learner.act({request}).front());
      for (size_t i = 0; i < plays.size(); ++i) plays[i].step(actions[i]);
    }
    std::vector<Outcome> outcomes;
    for (const Play& play : plays) outcomes.push_back(play.outcome());
    const double last_reward = learner.learn(outcomes);
    episodes.push_back({last_reward, digest_of(learner.policy().parameters())});
  }
  return episodes;
}

}  // namespace rehearsal::batch_rl
