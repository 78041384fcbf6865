// `shrink`: a run that fails, made small: smaller options, fewer faults, then the fewest decisions
// with the least values, all others benign. Only what fails alike is accepted: the same oracle, on
// the same kind of object.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/explanation.h"
#include "scenarios/command_line/hunt_tasks.h"
#include "scenarios/command_line/run_file.h"
#include "sim/failure_kind.h"

namespace rehearsal::command_line {
namespace {

bool alike(const Failure& one, const Failure& other) {
  return one.oracle == other.oracle &&
         sim::kind_of_object(one.object) == sim::kind_of_object(other.object);
}

// The same run with one class of faults less, or a milder one.
std::vector<RunSettings> milder(const RunSettings& settings) {
  const FaultPlan plan = settings.fault_plan();
  RunSettings same = settings;
  same.faults = plan.faults;
  same.crashes = plan.crashes;
  same.long_partitions = plan.long_partitions;
  same.long_pauses = plan.long_pauses;
  std::vector<RunSettings> candidates;
  const auto add = [&](auto change) { change(candidates.emplace_back(same)); };
  if (!settings.strategy.empty()) add([](RunSettings& other) { other.strategy.clear(); });
  if (plan.crashes > 0) add([](RunSettings& other) { other.crashes = 0; });
  if (plan.crashes > 1) add([&](RunSettings& other) { other.crashes = plan.crashes - 1; });
  if (plan.long_partitions) add([](RunSettings& other) { other.long_partitions = false; });
  if (plan.long_pauses) add([](RunSettings& other) { other.long_pauses = false; });
  if (plan.faults != Faults::none) add([](RunSettings& other) { other.faults = Faults::none; });
  if (plan.faults == Faults::hostile) add([](RunSettings& other) { other.faults = Faults::mild; });
  return candidates;
}

std::vector<RunSettings> smaller(const RunSettings& settings) {
  std::vector<RunSettings> candidates;
  for (const Options& options : settings.scenario->options.smaller(settings.options)) {
    candidates.push_back(settings);
    candidates.back().options = options;
  }
  return candidates;
}

class Shrinker {
 public:
  Shrinker(const Tool& tool, const RunSettings& settings, double seconds)
      : tool_(tool), settings_(settings), seconds_(seconds), crew_(make_crew(1)) {}

  // Empty if the run holds: there is nothing to shrink.
  std::optional<Shrunk> run() {
    const RunOutcome first = attempt(settings_);
    if (first.ok || !first.failure) return std::nullopt;
    failure_ = *first.failure;
    // A list of decisions belongs to one program and one set of faults.
    if (settings_.decisions.empty()) {
      while (accept_one_of(smaller(settings_)) || accept_one_of(milder(settings_))) {
      }
    }
    shrink_decisions();
    return Shrunk{settings_, failure_, runs_, stopwatch_.seconds()};
  }

 private:
  bool may_go_on() const { return stopwatch_.seconds() < seconds_; }

  RunOutcome attempt(const RunSettings& settings) {
    ++runs_;
    show_progress();
    crew_.give(0, runs_, settings);
    while (true)
      for (Crew::Done& done : crew_.wait()) return std::move(done.outcome);
  }

  bool accept(const RunSettings& candidate) {
    RunOutcome outcome = attempt(candidate);
    if (outcome.ok || !outcome.failure || !alike(*outcome.failure, failure_)) return false;
    settings_ = candidate;
    failure_ = std::move(*outcome.failure);
    return true;
  }

  bool accept_one_of(const std::vector<RunSettings>& candidates) {
    return std::any_of(candidates.begin(), candidates.end(), [this](const RunSettings& candidate) {
      return may_go_on() && accept(candidate);
    });
  }

  void shrink_decisions() {
    RunSettings recorded = settings_;
    recorded.record = true;
    RunSettings listed = settings_;
    listed.benign = true;
    listed.decisions = attempt(recorded).choices;
    if (!accept(listed)) return;
    const ShrinkTrial trial{.fails =
                                [this](const std::vector<std::string>& decisions) {
                                  RunSettings candidate = settings_;
                                  candidate.decisions = decisions;
                                  return accept(candidate);
                                },
                            .may_go_on = [this] { return may_go_on(); }};
    static_cast<void>(tool_.backends.shrink(settings_.decisions, trial));
    drop_absent();
  }

  // Decisions that the smaller run does not ask for any more.
  void drop_absent() {
    const RunOutcome outcome = attempt(settings_);
    RunSettings candidate = settings_;
    std::erase_if(candidate.decisions, [&outcome](const std::string& decision) {
      const std::string key = decision.substr(0, decision.find('='));
      return std::find(outcome.absent.begin(), outcome.absent.end(), key) != outcome.absent.end();
    });
    if (candidate.decisions.size() < settings_.decisions.size()) accept(candidate);
  }

  void show_progress() {
    std::ostringstream text;
    text << "shrink: " << runs_ << " runs";
    if (settings_.benign) text << ", " << settings_.decisions.size() << " decisions left";
    progress_.show(text.str());
  }

  const Tool& tool_;
  RunSettings settings_;
  const double seconds_;
  Crew crew_;
  Stopwatch stopwatch_;
  ProgressLine progress_;
  Failure failure_;
  size_t runs_ = 0;
};

}  // namespace

std::optional<Shrunk> shrink_run(const Tool& tool, const RunSettings& settings, double seconds) {
  return Shrinker(tool, settings, seconds).run();
}

int shrink(const Tool& tool, const ShrinkCommand& command) {
  const auto shrunk = shrink_run(tool, command.settings, command.seconds);
  if (!shrunk) {
    if (tool.json) {
      std::cout << Json{{"command", "shrink"}, {"ok", true}}.dump(2) << std::endl;
    } else {
      std::cout << "shrink: the run holds; there is nothing to shrink" << std::endl;
    }
    return kHolds;
  }
  if (!command.file.empty()) write_run_file(command.file, shrunk->settings, shrunk->failure);
  const std::string replay = replay_command(tool.program, shrunk->settings);
  if (tool.json) {
    std::cout << Json{{"command", "shrink"},
                      {"ok", false},
                      {"scenario", shrunk->settings.scenario->name},
                      {"runs", shrunk->runs},
                      {"decisions", shrunk->settings.decisions},
                      {"failure", to_json(shrunk->failure, replay)},
                      {"wall_seconds", shrunk->seconds}}
                     .dump(2)
              << std::endl;
  } else {
    std::cout << "shrink: " << shrunk->settings.decisions.size() << " decisions are left, after "
              << shrunk->runs << " runs and " << std::fixed << std::setprecision(1)
              << shrunk->seconds << " s" << std::endl;
  }
  static_cast<void>(explain_failure(tool, shrunk->settings, shrunk->failure));
  print_failure(tool, shrunk->settings, shrunk->failure);
  return kFailed;
}

}  // namespace rehearsal::command_line
