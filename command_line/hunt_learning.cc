#include "command_line/hunt_learning.h"

#include <algorithm>

#include "core/base/hash.h"

namespace rehearsal::command_line {
namespace {

// Distinguishes the salts of a seed from its other hashes.
constexpr uint64_t kGuidedSalt = 0x677569646564;

// A mutation draws about so many choices anew, a parent has so many children, and a line has so
// many mutations at most (as in Fest, an evolutionary search over schedules).
constexpr uint64_t kRedrawnChoices = 5;
constexpr int kChildren = 16;
constexpr size_t kMutationsMax = 8;

constexpr size_t kYoungest = 64;  // of the parents: the others are not gone on from

constexpr uint64_t kStepsMin = 16;  // a shorter run says nothing about others

}  // namespace

std::string strategy_label(const RunSettings& settings) {
  if (!settings.redraws.empty()) return std::string(kGuided);
  return settings.strategy.substr(0, settings.strategy.find(':'));
}

RunSettings HuntLearning::improve(size_t task, const RunSettings& asked) {
  results_.take_until(task, [this](Result result) { take(std::move(result)); });
  if (asked.strategy == kGuided) return child_of_one(asked);
  RunSettings settings = asked;
  const auto steps = steps_max_.find(asked.scenario);
  const bool places = asked.strategy == "pct" || asked.strategy == "delays";
  if (places && steps != steps_max_.end())
    settings.strategy += ":k=" + std::to_string(steps->second);
  return settings;
}

// While nothing is known, a guided run is a run of its own seed.
RunSettings HuntLearning::child_of_one(const RunSettings& asked) {
  RunSettings settings = asked;
  settings.strategy.clear();
  std::vector<Parent>& parents = parents_[asked.scenario];
  if (parents.empty()) return settings;
  const uint64_t salt = mix(asked.seed.value, kGuidedSalt) >> 32;
  const size_t young = std::min(parents.size(), kYoungest);
  Parent& parent = parents[parents.size() - 1 - salt % young];
  settings = parent.settings;
  settings.redraws.push_back(std::to_string(salt) + "/" +
                             std::to_string(std::max<uint64_t>(2, parent.draws / kRedrawnChoices)));
  if (--parent.children_left == 0) parents.erase(parents.begin() + (&parent - parents.data()));
  return settings;
}

void HuntLearning::learn(size_t task, const RunSettings& settings, const RunOutcome& outcome) {
  results_.put(task, {settings, outcome.steps, outcome.draws, outcome.features});
}

void HuntLearning::take(Result result) {
  const Scenario* const scenario = result.settings.scenario;
  if (result.steps >= kStepsMin) {
    uint64_t& most = steps_max_[scenario];
    most = std::max(most, result.steps);
  }
  auto& seen = seen_[scenario];
  bool shows_something_new = false;
  for (const uint32_t feature : result.features) {
    shows_something_new = shows_something_new || !seen.test(feature);
    seen.set(feature);
  }
  if (shows_something_new && result.settings.redraws.size() < kMutationsMax)
    parents_[scenario].push_back({std::move(result.settings), result.draws, kChildren});
}

}  // namespace rehearsal::command_line
