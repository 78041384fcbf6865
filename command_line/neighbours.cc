#include "command_line/neighbours.h"

#include <optional>
#include <utility>

#include "command_line/terminal.h"
#include "sim/decisions/decision_words.h"
#include "sim/explore/explorer.h"
#include "sim/hunt/shrinking.h"

namespace rehearsal::command_line {
namespace {

using sim::explore::Schedule;
using sim::explore::Transition;

// Of a schedule that fails without deviations: how many steps are tried to go otherwise, and how
// many of those that hold are enough.
constexpr size_t kStepsTried = 60;
constexpr size_t kMoreStepsMax = 3;

class Search {
 public:
  Search(const Tool& tool, const RunSettings& settings, const Attempt& attempt, double seconds)
      : tool_(tool), settings_(settings), attempt_(attempt), seconds_(seconds) {}

  std::vector<Neighbour> run() {
    std::vector<Neighbour> neighbours;
    if (!settings_.schedule.empty()) {
      take_from_schedules(neighbours);
      return neighbours;
    }
    for (size_t i = 0; i < settings_.decisions.size() && may_go_on(); ++i)
      if (auto neighbour = with_less(i)) neighbours.push_back(std::move(*neighbour));
    if (settings_.decisions.empty()) take_from_another_order(neighbours);
    return neighbours;
  }

 private:
  bool may_go_on() const { return stopwatch_.seconds() < seconds_; }

  // A run that lacks a decision that it was given is another run, not a failed one.
  bool holds(const RunSettings& settings) {
    const RunOutcome outcome = attempt_(settings);
    return outcome.ok || (outcome.failure && outcome.failure->oracle == "decisions");
  }

  RunSettings with_value(size_t place, uint64_t value) const {
    RunSettings settings = settings_;
    if (value == 0) {
      settings.decisions.erase(settings.decisions.begin() + static_cast<ptrdiff_t>(place));
    } else {
      settings.decisions[place].value = value;
    }
    return settings;
  }

  std::optional<Neighbour> with_less(size_t place) {
    const sim::Override& decision = settings_.decisions[place];
    uint64_t enough = 0;
    if (!holds(with_value(place, enough))) return std::nullopt;
    uint64_t too_much = decision.value;
    // A shrunk value is the least that fails: one less is likely to hold.
    for (uint64_t tried = too_much - 1; too_much - enough > 1 && may_go_on();
         tried = enough + (too_much - enough) / 2) {
      if (tried == enough) break;
      (holds(with_value(place, tried)) ? enough : too_much) = tried;
    }
    return Neighbour{with_value(place, enough), settings_, decider_of(decision, true)};
  }

  // Choices with which another order of events holds, as few as shrinking leaves: each is needed,
  // so that without it the run fails again.
  void take_from_another_order(std::vector<Neighbour>& neighbours) {
    const auto holding = in_another_order();
    if (!holding) return;
    for (size_t i = 0; i < holding->decisions.size() && may_go_on(); ++i) {
      RunSettings failing = *holding;
      failing.decisions.erase(failing.decisions.begin() + static_cast<ptrdiff_t>(i));
      if (!holds(failing))
        neighbours.push_back({*holding, failing, decider_of(holding->decisions[i], false)});
    }
  }

  sim::Decider decider_of(const sim::Override& decision, bool fails_with_it) const {
    const std::string words = in_words(decision, workers_);
    return {.words = words.empty() ? to_string(decision) : words,
            .fails_with_it = fails_with_it,
            .says_where = sim::says_where(decision)};
  }

  std::string words_of(const Transition& fault) const {
    const std::string& first = workers_.at(fault.first);
    if (fault.kind == Transition::Kind::crash) return first + " crashes";
    const std::string& second = workers_.at(fault.second);
    if (fault.kind == Transition::Kind::cut)
      return "the link of " + first + " and " + second + " is cut";
    return first + " takes " + second + " for dead";
  }

  static std::string words_of(const Schedule::Deviation& deviation) {
    return "step " + std::to_string(deviation.step) + " of the schedule";
  }

  void try_schedule(const Schedule& schedule, const sim::Decider& decider,
                    std::vector<Neighbour>& neighbours) {
    RunSettings other = settings_;
    other.schedule = to_string(schedule);
    if (may_go_on() && holds(other)) neighbours.push_back({other, settings_, decider});
  }

  void take_from_schedules(std::vector<Neighbour>& neighbours) {
    const Schedule failing = sim::explore::parse_schedule(settings_.schedule, workers_.size());
    for (size_t i = 0; i < failing.deviations.size(); ++i) {
      Schedule less = failing;
      less.deviations.erase(less.deviations.begin() + static_cast<ptrdiff_t>(i));
      try_schedule(less, {.words = words_of(failing.deviations[i]), .says_where = false},
                   neighbours);
    }
    for (size_t i = 0; i < failing.faults.size(); ++i) {
      Schedule less = failing;
      less.faults.erase(less.faults.begin() + static_cast<ptrdiff_t>(i));
      less.deviations.clear();  // Other things may happen at its steps.
      try_schedule(less, {.words = words_of(failing.faults[i]), .says_where = false}, neighbours);
    }
    for (size_t step = 0;
         failing.deviations.empty() && neighbours.size() < kMoreStepsMax && step < kStepsTried;
         ++step) {
      Schedule more = failing;
      more.deviations.push_back({step, {}, 1});
      try_schedule(
          more,
          {.words = words_of(more.deviations.back()), .fails_with_it = false, .says_where = false},
          neighbours);
    }
  }

  std::optional<RunSettings> in_another_order() {
    for (const std::string& strategy : tool_.backends.strategies) {
      if (!may_go_on()) return std::nullopt;
      RunSettings other = settings_;
      other.strategy = strategy;
      other.benign = false;
      other.record = true;
      RunOutcome outcome = attempt_(other);
      if (!outcome.ok) continue;
      other.benign = true;
      other.record = false;
      other.decisions = std::move(outcome.choices);
      if (!holds(other)) continue;
      const auto holds_with = [this, &other](const std::vector<sim::Override>& decisions) {
        RunSettings candidate = other;
        candidate.decisions = decisions;
        return holds(candidate);
      };
      other.decisions = sim::shrink_choices(
          other.decisions, {.fails = holds_with, .may_go_on = [this] { return may_go_on(); }});
      return other;
    }
    return std::nullopt;
  }

  const Tool& tool_;
  const RunSettings& settings_;
  const std::vector<std::string> workers_ = worker_names(settings_);
  const Attempt& attempt_;
  const double seconds_;
  Stopwatch stopwatch_;
};

}  // namespace

std::vector<Neighbour> neighbours_that_hold(const Tool& tool, const RunSettings& settings,
                                            const Attempt& attempt, double seconds) {
  if (!settings.benign && settings.schedule.empty()) return {};
  return Search(tool, settings, attempt, seconds).run();
}

}  // namespace rehearsal::command_line
