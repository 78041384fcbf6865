#include "command_line/neighbours.h"

#include <optional>
#include <utility>

#include "command_line/terminal.h"
#include "sim/hunt/shrinking.h"

namespace rehearsal::command_line {
namespace {

class Search {
 public:
  Search(const Tool& tool, const RunSettings& settings, const Attempt& attempt, double seconds)
      : tool_(tool), settings_(settings), attempt_(attempt), seconds_(seconds) {}

  std::vector<Neighbour> run() {
    std::vector<Neighbour> neighbours;
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
    return Neighbour{with_value(place, enough), settings_, to_string(decision)};
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
        neighbours.push_back({*holding, failing, to_string(holding->decisions[i])});
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
  const Attempt& attempt_;
  const double seconds_;
  Stopwatch stopwatch_;
};

}  // namespace

std::vector<Neighbour> neighbours_that_hold(const Tool& tool, const RunSettings& settings,
                                            const Attempt& attempt, double seconds) {
  if (!settings.benign) return {};
  return Search(tool, settings, attempt, seconds).run();
}

}  // namespace rehearsal::command_line
