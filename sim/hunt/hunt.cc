#include "sim/hunt/hunt.h"

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <utility>

#include "sim/hunt/report_folder.h"
#include "sim/hunt/trial_runs.h"
#include "sim/hunt/trial_shrinking.h"

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
  explicit Hunter(const HuntTask& task) : task_(task), runs_(task) {}

  Hunted hunt() {
    const Search search = search_of(task_.options, task_.environment);
    const WallTime searching;
    if (search.time_max < Duration::max())
      runs_.give_up_when([this, &search, &searching] {
        return searching.passed() > search.time_max + task_.options.overtime;
      });
    for (uint64_t i = task_.environment.shard; i < search.seeds_max;
         i += task_.environment.shard_count) {
      if (hunted_.seeds > 0 && searching.passed() > search.time_max) break;
      if (try_seed(Seed{search.first_seed.value + i})) break;
    }
    return std::move(hunted_);
  }

 private:
  // True if the hunt is over. A failure has been shrunk by then, and its report is written.
  bool try_seed(Seed seed) {
    ChosenRun run{.seed = seed,
                  .strategy = task_.options.strategy.value_or(portfolio_strategy(seed))};
    run.strategy = runs_.taught(run);
    ++hunted_.seeds;
    std::optional<RunFailure> failure = runs_.attempt(run);
    if (runs_.gave_up()) return give_up(std::move(run));
    hunted_.without_cluster = task_.needs_cluster && !runs_.made_cluster();
    if (!failure) return hunted_.without_cluster;
    hunted_.found_with = seed;
    hunted_.run = std::move(run);
    hunted_.failure = std::move(failure);
    runs_.give_up_when(nullptr);
    if (task_.options.shrink_time > Duration::zero()) shrink();
    write_report();
    return true;
  }

  // A hunt that has tried nothing to its end has found nothing, and must not pass.
  bool give_up(ChosenRun run) {
    if (hunted_.seeds > 1) {
      --hunted_.seeds;
      return true;
    }
    hunted_.found_with = run.seed;
    hunted_.run = std::move(run);
    hunted_.failure = RunFailure{"unfinished", "the run",
                                 "it had not ended when the time of the hunt was up: give it more, "
                                 "or make the run smaller"};
    return true;
  }

  void shrink() {
    const WallTime shrinking;
    runs_.give_up_when(
        [this, &shrinking] { return shrinking.passed() > task_.options.shrink_time; });
    SmallTrial small =
        shrink_trial(runs_, hunted_.run, *hunted_.failure, task_.options.shrink_time);
    hunted_.run = std::move(small.run);
    hunted_.failure = std::move(small.failure);
    hunted_.choices = small.choices;
    hunted_.shrink_runs = small.runs;
    hunted_.shrink_time = shrinking.passed();
    runs_.give_up_when(nullptr);
  }

  void write_report() {
    const std::string root = task_.options.report_folder.empty() ? task_.environment.report_folder
                                                                 : task_.options.report_folder;
    if (root.empty()) return;
    std::string name = task_.name;
    std::replace(name.begin(), name.end(), '/', '_');
    hunted_.report = (std::filesystem::path(root) / name).string();
    hunted_.report_written = true;  // As its own text says.
    hunted_.report_written = write_report_folder(runs_, hunted_);
  }

  const HuntTask& task_;
  TrialRuns runs_;
  Hunted hunted_;
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
  if (hunted.without_cluster)
    text << "no cluster was made with the options of the hunt: there is nothing to make small, and "
            "no event to show\n";
  if (hunted.report_written)
    text << "its report: " << hunted.report
         << (hunted.without_cluster ? "/failure.txt\n" : "/failure.html\n");
  else if (!hunted.report.empty())
    text << "its report cannot be written to " << hunted.report << "\n";
  text << "repeat it with:\n" << command;
  return text.str();
}

}  // namespace rehearsal::sim
