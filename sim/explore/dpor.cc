#include "sim/explore/dpor.h"

#include <algorithm>

#include "core/base/check.h"

namespace rehearsal::sim::explore {
namespace {

// The place of the candidate that would do the same thing; or the size of the list.
size_t place_of(const std::vector<Candidate>& enabled, const Transition& transition) {
  return static_cast<size_t>(
      std::find_if(enabled.begin(), enabled.end(),
                   [&](const Candidate& other) { return other.transition == transition; }) -
      enabled.begin());
}

bool still_there(const std::vector<Candidate>& enabled, const Candidate& candidate) {
  const size_t place = place_of(enabled, candidate.transition);
  return place < enabled.size() && enabled[place].event == candidate.event;
}

}  // namespace

bool Dpor::begin_run() {
  if (done_) return false;
  step_ = 0;
  stopping_ = false;
  return true;
}

void Dpor::end_run() {
  ++(stopping_ ? stopped_ : schedules_);
  steps_ += step_;
  REHEARSAL_CHECK(step_ == states_.size(), step_, states_.size());
  for (size_t step = analysed_; step < states_.size(); ++step) {
    find_order(step);
    find_races(step);
  }
  go_on();
}

size_t Dpor::pick(const std::vector<Candidate>& enabled) {
  choice_ = 0;
  if (step_ < states_.size()) {
    const State& state = states_[step_];
    REHEARSAL_CHECK(state.enabled.size() == enabled.size(), step_, "the run is not deterministic");
    ++step_;
    return state.picked;
  }
  if (!states_.empty()) note_taken_away(states_.back(), enabled);
  if (enabled.empty()) return kStop;
  enter(enabled);
  if (stopping_) return kStop;
  ++step_;
  return states_.back().picked;
}

// A continuation that sleeps goes on sleeping as long as nothing happens that depends on it.
void Dpor::enter(const std::vector<Candidate>& enabled) {
  State state{.enabled = enabled,
              .asleep = std::vector<bool>(enabled.size(), false),
              .backtrack = std::vector<bool>(enabled.size(), false)};
  if (!states_.empty()) {
    const State& before = states_.back();
    const Transition& happened = transition(states_.size() - 1);
    for (size_t i = 0; i < before.enabled.size(); ++i) {
      const Candidate& candidate = before.enabled[i];
      if (before.asleep[i] && !dependent(candidate.transition, happened) &&
          still_there(enabled, candidate))
        state.asleep[place_of(enabled, candidate.transition)] = true;
    }
  }
  const auto awake = std::find(state.asleep.begin(), state.asleep.end(), false);
  stopping_ = awake == state.asleep.end();
  if (stopping_) return;
  state.picked = static_cast<size_t>(awake - state.asleep.begin());
  state.backtrack[state.picked] = true;
  states_.push_back(std::move(state));
}

void Dpor::note_taken_away(State& before, const std::vector<Candidate>& enabled) {
  for (size_t i = 0; i < before.enabled.size(); ++i)
    if (i != before.picked && !still_there(enabled, before.enabled[i])) before.backtrack[i] = true;
}

uint64_t Dpor::choose(uint64_t n) {
  REHEARSAL_CHECK(step_ > 0);
  std::vector<Choice>& choices = states_[step_ - 1].choices;
  if (choice_ == choices.size()) choices.push_back({0, n});
  const Choice& choice = choices[choice_++];
  REHEARSAL_CHECK(choice.of == n, step_, "the run is not deterministic");
  return choice.value;
}

void Dpor::received_from(size_t step) {
  REHEARSAL_CHECK(step_ > 0);
  if (step_ - 1 >= analysed_) states_[step_ - 1].received.push_back(step);
}

// Finds the steps before a step: those that made it possible, those that it depends on, and those
// before these.
void Dpor::find_order(size_t step) {
  State& state = states_[step];
  state.before.assign(step, false);
  const auto add = [&](size_t earlier) {
    REHEARSAL_CHECK(earlier < step, earlier, step);
    const std::vector<bool>& before = states_[earlier].before;
    for (size_t i = 0; i < before.size(); ++i)
      if (before[i]) state.before[i] = true;
    state.before[earlier] = true;
  };
  for (const size_t cause : state.enabled[state.picked].causes) add(cause);
  for (const size_t sender : state.received) add(sender);
  for (size_t earlier = 0; earlier < step; ++earlier)
    if (dependent(transition(earlier), transition(step))) add(earlier);
}

void Dpor::find_races(size_t step) {
  for (size_t earlier = 0; earlier < step; ++earlier)
    if (dependent(transition(earlier), transition(step)) && reversible(earlier, step))
      reverse(earlier, step);
}

// Whether the later one could have come first: nothing between them, nor the earlier one itself,
// had to happen for it.
bool Dpor::reversible(size_t earlier, size_t later) const {
  if (transition(earlier) == transition(later)) return false;
  const State& state = states_[later];
  const std::vector<size_t>& causes = state.enabled[state.picked].causes;
  const auto names = [earlier](const std::vector<size_t>& steps) {
    return std::find(steps.begin(), steps.end(), earlier) != steps.end();
  };
  if (names(causes) || names(state.received)) return false;
  for (size_t between = earlier + 1; between < later; ++between)
    if (state.before[between] && states_[between].before[earlier]) return false;
  return true;
}

// Some run must go on, from before `earlier`, with something by which `later` can come first.
void Dpor::reverse(size_t earlier, size_t later) {
  State& state = states_[earlier];
  std::vector<size_t> others;  // what happened since and did not need `earlier`, `later` at last
  std::vector<size_t> first;   // of these, places of what needs none of them
  for (size_t step = earlier + 1; step <= later; ++step) {
    const std::vector<bool>& before = states_[step].before;
    if (step != later && before[earlier]) continue;
    const bool needs_other = std::any_of(others.begin(), others.end(),
                                         [&before](size_t other) { return before[other]; });
    others.push_back(step);
    if (needs_other) continue;
    const size_t place = place_of(state.enabled, transition(step));
    if (place == state.enabled.size()) continue;
    if (state.backtrack[place] || state.asleep[place]) return;
    first.push_back(place);
  }
  if (!first.empty()) {
    state.backtrack[first.front()] = true;
  } else {
    state.backtrack.assign(state.enabled.size(), true);
  }
}

// The deepest state at which something is left to be picked or chosen is where the next run parts
// from this one.
void Dpor::go_on() {
  const auto resume = [this] {
    states_.back().received.clear();
    analysed_ = states_.size() - 1;
  };
  while (!states_.empty()) {
    State& state = states_.back();
    for (; !state.choices.empty(); state.choices.pop_back())
      if (++state.choices.back().value < state.choices.back().of) return resume();
    state.asleep[state.picked] = true;
    for (size_t i = 0; i < state.enabled.size(); ++i) {
      if (!state.backtrack[i] || state.asleep[i]) continue;
      state.picked = i;
      return resume();
    }
    states_.pop_back();
  }
  done_ = true;
}

double Dpor::progress() const {
  double done = 0;
  double share = 1;
  for (const State& state : states_) {
    double known = 0;
    double run = 0;
    for (size_t i = 0; i < state.enabled.size(); ++i) {
      if (!state.backtrack[i]) continue;
      ++known;
      if (state.asleep[i]) ++run;
    }
    share /= known;
    done += run * share;
    for (const Choice& choice : state.choices) {
      share /= static_cast<double>(choice.of);
      done += static_cast<double>(choice.value) * share;
    }
  }
  return done_ ? 1 : done;
}

std::vector<Dpor::Pick> Dpor::schedule() const {
  std::vector<Pick> picks;
  for (size_t step = 0; step < step_; ++step) {
    Pick pick{.place = states_[step].picked};
    for (const Choice& choice : states_[step].choices) pick.choices.push_back(choice.value);
    picks.push_back(std::move(pick));
  }
  return picks;
}

}  // namespace rehearsal::sim::explore
