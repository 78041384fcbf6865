#include "sim/testing/hunt.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <utility>

#include "sim/shrinking.h"
#include "sim/testing/crash_report.h"

namespace rehearsal::sim {
namespace {

constexpr uint64_t kSeedsOtherwise = 200;

// The limits and the seeds of one hunt, once options and environment are put together.
struct Search {
  uint64_t seeds_max = UINT64_MAX;
  Duration time_max = Duration::max();
  Seed first_seed{1};
};

Search search_of(const HuntOptions& options, const Environment& environment) {
  Search search;
  search.first_seed = options.first_seed.value_or(environment.first_seed.value_or(Seed{1}));
  const bool limited = environment.seeds || environment.seconds;
  if (environment.seeds) search.seeds_max = *environment.seeds;
  if (environment.seconds) search.time_max = std::chrono::seconds(*environment.seconds);
  if (limited) return search;
  if (options.seeds) search.seeds_max = *options.seeds;
  if (options.time) search.time_max = *options.time;
  if (!options.seeds && !options.time) search.seeds_max = kSeedsOtherwise;
  return search;
}

class Hunter {
 public:
  explicit Hunter(const HuntTask& task) : task_(task) {}

  Hunted hunt() {
    const Search search = search_of(task_.options, task_.environment);
    const WallTime searching;
    for (uint64_t i = task_.environment.shard; i < search.seeds_max;
         i += task_.environment.shard_count) {
      if (hunted_.seeds > 0 && searching.passed() > search.time_max) break;
      if (try_seed(Seed{search.first_seed.value + i})) break;
    }
    return std::move(hunted_);
  }

 private:
  // True if it fails: then it has been shrunk, and the report is written.
  bool try_seed(Seed seed) {
    ChosenRun run{.seed = seed,
                  .strategy = task_.options.strategy.value_or(portfolio_strategy(seed))};
    ++hunted_.seeds;
    std::optional<SeenFailure> failure = attempt(run);
    if (!failure) return false;
    hunted_.found_with = seed;
    hunted_.run = std::move(run);
    hunted_.failure = std::move(failure);
    if (task_.options.shrink_time > Duration::zero()) shrink();
    write_report();
    return true;
  }

  // A run that ends its process says how to repeat it, too.
  std::optional<SeenFailure> attempt(const ChosenRun& run) {
    ClusterOptions options = run.applied_to(task_.options.cluster);
    options.reproduction = task_.command_of(run);
    options.record_choices = true;
    options.report = &report_;
    options.event_lines = lines_;
    report_ = {};
    const CrashReport crash_report(
        {.standard_error =
             "the process of the run ended; repeat it with:\n" + options.reproduction + "\n"});
    return task_.trial(run.seed, options);
  }

  // Goes over to `run` if it fails alike.
  bool accept(const ChosenRun& run) {
    ++hunted_.shrink_runs;
    std::optional<SeenFailure> failure = attempt(run);
    if (!failure || failure->kind != hunted_.failure->kind) return false;
    hunted_.run = run;
    hunted_.failure = std::move(failure);
    return true;
  }

  void shrink() {
    const WallTime shrinking;
    ChosenRun listed = hunted_.run;
    listed.otherwise = Otherwise::benign;
    listed.decisions = report_.choices;
    hunted_.choices = listed.decisions.size();
    if (hunted_.choices > 0 && accept(listed)) {
      const ShrinkTrial trial{
          .fails =
              [this](const std::vector<Override>& decisions) {
                ChosenRun candidate = hunted_.run;
                candidate.decisions = decisions;
                return accept(candidate);
              },
          .may_go_on = [this,
                        &shrinking] { return shrinking.passed() < task_.options.shrink_time; }};
      static_cast<void>(shrink_choices(listed.decisions, trial));
      drop_absent();
    }
    hunted_.shrink_time = shrinking.passed();
  }

  // Decisions that the smaller run does not ask for any more.
  void drop_absent() {
    static_cast<void>(attempt(hunted_.run));
    ChosenRun candidate = hunted_.run;
    const std::vector<std::string>& absent = report_.absent_overrides;
    std::erase_if(candidate.decisions, [&absent](const Override& decision) {
      return std::find(absent.begin(), absent.end(), net_fake::to_string(decision.key)) !=
             absent.end();
    });
    if (candidate.decisions.size() < hunted_.run.decisions.size()) accept(candidate);
  }

  void write_report() {
    const std::string root = task_.options.report_folder.empty() ? task_.environment.report_folder
                                                                 : task_.options.report_folder;
    if (root.empty()) return;
    std::string name = task_.name;
    std::replace(name.begin(), name.end(), '/', '_');
    const std::filesystem::path folder = std::filesystem::path(root) / name;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    hunted_.report = folder.string();
    hunted_.report_written =
        write_run((folder / "failure.run").string(), hunted_.run, hunted_.failure->message);
    if (!hunted_.report_written) return;
    std::ofstream lines(folder / "events.txt");
    lines_ = &lines;
    static_cast<void>(attempt(hunted_.run));
    lines_ = nullptr;
    std::ofstream(folder / "failure.txt")
        << describe(hunted_, task_.command_of(hunted_.run)) << "\n";
  }

  const HuntTask& task_;
  Hunted hunted_;
  RunReport report_;  // of the last run
  std::ostream* lines_ = nullptr;
};

}  // namespace

Hunted hunt_seeds(const HuntTask& task) { return Hunter(task).hunt(); }

std::string describe(const Hunted& hunted, const std::string& command) {
  std::ostringstream text;
  text << "seed " << hunted.found_with.value << " failed, " << hunted.seeds
       << " tried: " << hunted.failure->message;
  if (!hunted.failure->message.ends_with("\n")) text << "\n";
  if (hunted.shrink_runs > 0)
    text << hunted.run.decisions.size() << " of its " << hunted.choices
         << " choices are left, after " << hunted.shrink_runs << " runs and " << std::fixed
         << std::setprecision(1) << std::chrono::duration<double>(hunted.shrink_time).count()
         << " s of shrinking\n";
  if (hunted.report_written)
    text << "its events: " << hunted.report << "/events.txt\n";
  else if (!hunted.report.empty())
    text << "its report cannot be written to " << hunted.report << "\n";
  text << "repeat it with:\n" << command;
  return text.str();
}

}  // namespace rehearsal::sim
