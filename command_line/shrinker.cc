#include "command_line/shrinker.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "command_line/hunt_tasks.h"
#include "command_line/run_file.h"
#include "command_line/temporary_folder.h"
#include "record/whole_file.h"
#include "sim/hunt/choice_lists.h"
#include "sim/hunt/failure_kind.h"
#include "sim/hunt/shrinking.h"

namespace rehearsal::command_line {
namespace {

constexpr double kSaveInterval = 0.5;  // of the file, in seconds

// Of the budget, for fewer workers, operations and classes of faults: the rest is for decisions.
constexpr double kStructureShare = 0.4;

// With so many decisions, or fewer, it may end; with more it may take so many times the budget.
constexpr size_t kDecisionsFloor = 40;
constexpr double kFloorShare = 4;

// A run that is under way when the time is up goes on for so long; one without which nothing could
// be said, for longer.
constexpr double kOvertimeSeconds = 2;
constexpr double kNeededOvertimeSeconds = 60;

constexpr size_t kPrintedDecisionsMax = 30;  // of a failure seen on the way

// The same run with one class of faults less, or a milder one.
std::vector<RunSettings> milder(const RunSettings& settings) {
  const ScenarioFaults plan = settings.fault_plan();
  std::vector<RunSettings> candidates;
  const auto add = [&](auto change) { change(candidates.emplace_back(settings)); };
  if (!settings.strategy.empty()) add([](RunSettings& other) { other.strategy.clear(); });
  if (plan.mad > 0) add([](RunSettings& other) { other.mad = 0; });
  const int devices = settings.device_count();
  if (devices > 0) add([](RunSettings& other) { other.devices.clear(); });
  if (devices > 1) add([&](RunSettings& other) { other.devices = std::to_string(devices - 1); });
  if (plan.crashes > 0) add([](RunSettings& other) { other.crashes = 0; });
  if (plan.crashes > 1) add([&](RunSettings& other) { other.crashes = plan.crashes - 1; });
  if (plan.restarts != sim::Restart::never)
    add([](RunSettings& other) { other.restarts = sim::Restart::never; });
  if (plan.long_partitions) add([](RunSettings& other) { other.long_partitions = false; });
  if (plan.long_pauses) add([](RunSettings& other) { other.long_pauses = false; });
  if (plan.faults != sim::FaultLevel::none)
    add([](RunSettings& other) { other.faults = sim::FaultLevel::none; });
  if (plan.faults == sim::FaultLevel::hostile)
    add([](RunSettings& other) { other.faults = sim::FaultLevel::mild; });
  return candidates;
}

std::vector<RunSettings> with_fewer_redraws(const RunSettings& settings) {
  if (settings.redraws.empty()) return {};
  std::vector<RunSettings> candidates(2, settings);
  candidates[0].redraws.clear();
  candidates[1].redraws.pop_back();
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

std::vector<RunSettings> drawn_anew(const std::vector<RunSettings>& settings) {
  constexpr int kSchedules = 12;
  std::vector<RunSettings> candidates;
  for (int salt = 1; salt <= kSchedules; ++salt)
    for (const RunSettings& one : settings) {
      candidates.push_back(one);
      candidates.back().redraws = {std::to_string(salt) + "/1"};
    }
  return candidates;
}

// In the order in which they first came up. Of one key the last line counts; a line without an end
// is not whole.
std::vector<sim::Override> read_choices(const std::string& name) {
  std::vector<sim::Override> choices;
  std::map<sim::Key, size_t> places;
  std::ifstream file(name);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const sim::Override choice = sim::parse_override(line);
    const auto [place, is_new] = places.emplace(choice.key, choices.size());
    if (is_new) {
      choices.push_back(choice);
    } else {
      choices[place->second] = choice;
    }
  }
  return choices;
}

class Shrinker {
 public:
  Shrinker(const Tool& tool, const RunSettings& settings, const ShrinkOrder& order)
      : order_(order),
        crew_(make_crew(tool, 1, Crew::Errors::hidden)),
        spending_(order.budget, [this] { return crew_.processor_seconds(); }) {
    result_.settings = settings;
    if (order.hangs) crew_.expect_hangs();
  }

  Shrunk run() {
    if (!begin()) return finish();
    save();
    needed_ = false;
    // A list of decisions belongs to one program and one set of faults.
    if (settings().decisions.empty()) shrink_structure();
    in_structure_ = false;
    needed_ = true;
    const bool listed = list_decisions();
    needed_ = false;
    if (listed) {
      shrink_decisions();
      // The decisions that are left may need less than the whole program.
      while (accept_one_of(smaller(settings()))) shrink_decisions();
    }
    sim::sort_by_key(result_.settings.decisions);
    save();
    return finish();
  }

 private:
  const RunSettings& settings() const { return result_.settings; }

  bool may_go_on() const {
    return spending_.left(result_.runs, in_structure_ ? kStructureShare : share());
  }

  // Of the budget, for decisions.
  double share() const {
    return settings().benign && settings().decisions.size() > kDecisionsFloor ? kFloorShare : 1;
  }

  // Whether the run fails, and again so in a process that was started anew, with other addresses.
  bool begin() {
    const RunOutcome first = attempt(settings(), crew_);
    if (first.ok || !first.failure) return false;
    if (is_unfinished(first)) return end_with(Shrunk::End::unfinished);
    result_.settings.strategy = first.strategy.empty() ? settings().strategy : first.strategy;
    result_.failure = *first.failure;
    Crew other({{.arguments = {kChildCommand}}}, kRunSecondsMax, Crew::Errors::hidden);
    if (first.failure->oracle == "watchdog") {
      crew_.expect_hangs();
      other.expect_hangs();
    }
    const RunOutcome second = attempt(settings(), other);
    if (is_unfinished(second)) return end_with(Shrunk::End::unfinished);
    const bool same = first.fingerprint == second.fingerprint && second.failure &&
                      text_to_compare(*first.failure) == text_to_compare(*second.failure);
    result_.end = same ? Shrunk::End::shrunk : Shrunk::End::differs;
    return same;
  }

  bool end_with(Shrunk::End end) {
    result_.end = end;
    return false;
  }

  // The program, or the tool, ended its process so: its options cannot be used together.
  static bool is_refused(const sim::RunFailure& failure) {
    return failure.oracle == "process" && failure.object == "exit status 2";
  }

  static bool is_unfinished(const RunOutcome& outcome) {
    return outcome.failure && outcome.failure->oracle == kUnfinished;
  }

  Shrunk finish() {
    result_.seconds = stopwatch_.seconds();
    return std::move(result_);
  }

  RunOutcome attempt(const RunSettings& candidate, Crew& crew) {
    ++result_.runs;
    show_progress();
    crew.give(0, result_.runs, candidate);
    Overtime& overtime = needed_ ? needed_overtime_ : overtime_;
    while (!overtime.over(result_.runs, share()))
      for (Crew::Done& done : crew.wait()) return std::move(done.outcome);
    crew.abandon();
    RunOutcome unfinished;
    unfinished.failure = sim::RunFailure{kUnfinished, "the run", "the time is up"};
    return unfinished;
  }

  bool accept(RunSettings candidate) {
    RunOutcome outcome = attempt(candidate, crew_);
    if (outcome.ok || !outcome.failure) return false;
    // A smaller program has other events: those that it does not have need not be given.
    sim::drop_absent(candidate.decisions, outcome.absent);
    if (!sim::alike(*outcome.failure, result_.failure)) {
      // That a decision has nothing to decide is no failure of the program, nor that time is up,
      // nor that options do not go together.
      if (outcome.failure->oracle != "decisions" && !is_unfinished(outcome) &&
          !is_refused(*outcome.failure))
        note_other({std::move(candidate), std::move(*outcome.failure)});
      return false;
    }
    result_.settings = std::move(candidate);
    result_.failure = std::move(*outcome.failure);
    if (stopwatch_.seconds() - saved_ > kSaveInterval) save();
    return true;
  }

  void note_other(OtherFailure other) {
    for (OtherFailure& known : result_.others) {
      if (!sim::alike(known.failure, other.failure)) continue;
      if (other.settings.benign && (!known.settings.benign || other.settings.decisions.size() <
                                                                  known.settings.decisions.size()))
        known = std::move(other);
      return;
    }
    result_.others.push_back(std::move(other));
  }

  bool accept_one_of(const std::vector<RunSettings>& candidates) {
    return std::any_of(candidates.begin(), candidates.end(), [this](const RunSettings& candidate) {
      return may_go_on() && accept(candidate);
    });
  }

  // A smaller program needs another schedule to fail alike: where the given one does not do, some
  // are tried in which every choice is drawn anew.
  void shrink_structure() {
    do {
      while (accept_one_of(with_fewer_redraws(settings())) || accept_one_of(smaller(settings())) ||
             accept_one_of(milder(settings()))) {
      }
    } while (accept_one_of(drawn_anew(smaller(settings()))) ||
             accept_one_of(drawn_anew(milder(settings()))));
  }

  // A run that ends its process leaves them in a file.
  std::vector<sim::Override> recorded_choices() {
    RunSettings recorded = settings();
    recorded.record = true;
    if (!ends_process(result_.failure)) return attempt(recorded, crew_).choices;
    const TemporaryFolder folder;
    recorded.choices_file = folder.file("choices");
    static_cast<void>(attempt(recorded, crew_));
    return read_choices(recorded.choices_file);
  }

  // The same run as a list of what is not benign in it. Where it does not fail without its
  // strategy, the strategy stays.
  bool list_decisions() {
    if (settings().benign && settings().strategy.empty()) return true;
    const std::vector<sim::Override> choices = recorded_choices();
    RunSettings listed = settings();
    listed.benign = true;
    listed.redraws.clear();
    listed.decisions = choices;
    std::erase_if(listed.decisions, sim::is_deviation);
    const RunSettings with_strategy = listed;
    listed.strategy.clear();
    listed.decisions = choices;
    std::erase_if(listed.decisions, sim::is_of_strategy);
    return accept(listed) || (!settings().strategy.empty() && accept(with_strategy));
  }

  void shrink_decisions() {
    static_cast<void>(sim::shrink_choices(settings().decisions,
                                          {.fails =
                                               [this](const std::vector<sim::Override>& decisions) {
                                                 RunSettings candidate = settings();
                                                 candidate.decisions = decisions;
                                                 return accept(candidate);
                                               },
                                           .may_go_on = [this] { return may_go_on(); }}));
  }

  void save() {
    saved_ = stopwatch_.seconds();
    if (order_.file.empty()) return;
    const Status written =
        record::write_whole_file(order_.file, run_file_text(settings(), result_.failure));
    result_.unwritten = written.ok() ? "" : written.error().text;
  }

  void show_progress() {
    std::ostringstream text;
    text << "shrink: " << result_.runs << " runs";
    if (settings().benign) text << ", " << settings().decisions.size() << " decisions left";
    progress_.show(text.str());
  }

  const ShrinkOrder order_;
  Crew crew_;
  const Spending spending_;
  Overtime overtime_{spending_, kOvertimeSeconds};
  Overtime needed_overtime_{spending_, kNeededOvertimeSeconds};
  Stopwatch stopwatch_;
  ProgressLine progress_;
  double saved_ = 0;  // when
  bool in_structure_ = true;
  bool needed_ = true;  // what is run: it has more time
  Shrunk result_;
};

std::string repeat_text(const Tool& tool, const OtherFailure& other) {
  const size_t decisions = other.settings.decisions.size();
  if (decisions > kPrintedDecisionsMax)
    return "(a run with " + std::to_string(decisions) + " decisions)";
  return replay_command(tool.program, other.settings);
}

}  // namespace

Shrunk shrink_run(const Tool& tool, const RunSettings& settings, const ShrinkOrder& order) {
  return Shrinker(tool, settings, order).run();
}

std::string others_text(const Tool& tool, const Shrunk& shrunk) {
  std::string text;
  for (const OtherFailure& other : shrunk.others)
    text += "also seen, and not this failure: " + to_text(other.failure) + "\n  " +
            repeat_text(tool, other) + "\n";
  return text;
}

Json others_json(const Tool& tool, const Shrunk& shrunk) {
  Json others = Json::array();
  for (const OtherFailure& other : shrunk.others)
    others.push_back(to_json(other.failure, replay_command(tool.program, other.settings)));
  return others;
}

}  // namespace rehearsal::command_line
