#include "sim/hunt/trial_shrinking.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/hunt/choice_lists.h"
#include "sim/hunt/failure_kind.h"
#include "sim/hunt/shrinking.h"

namespace rehearsal::sim {
namespace {

class TrialShrinking {
 public:
  TrialShrinking(TrialRuns& runs, const ChosenRun& run, const RunFailure& failure, Duration time)
      : runs_(runs),
        time_(time),
        small_{.run = run, .failure = failure, .choices = runs.report().choices.size()} {}

  SmallTrial shrink() {
    if (small_.choices == 0) return std::move(small_);
    make_milder();
    if (list_decisions()) {
      static_cast<void>(
          shrink_choices(small_.run.decisions, {.fails =
                                                    [this](const std::vector<Override>& decisions) {
                                                      ChosenRun candidate = small_.run;
                                                      candidate.decisions = decisions;
                                                      return accept(std::move(candidate));
                                                    },
                                                .may_go_on = [this] { return may_go_on(); }}));
      name_all_classes();
      sort_by_key(small_.run.decisions);
    }
    return std::move(small_);
  }

 private:
  bool may_go_on() const { return watch_.passed() < time_; }

  // Goes over to `candidate` if it fails alike, without the decisions that it does not ask for.
  bool accept(ChosenRun candidate) {
    ++small_.runs;
    std::optional<RunFailure> failure = runs_.attempt(candidate);
    if (!failure || !alike(*failure, small_.failure)) return false;
    drop_absent(candidate.decisions, runs_.report().absent_overrides);
    small_.run = std::move(candidate);
    small_.failure = std::move(*failure);
    return true;
  }

  void make_milder() {
    const FaultLevel asked = runs_.task().options.cluster.faults;
    const auto accept_level = [this](FaultLevel level) {
      ChosenRun candidate = small_.run;
      candidate.faults = level;
      return accept(std::move(candidate));
    };
    if (asked != FaultLevel::none && !accept_level(FaultLevel::none) && asked != FaultLevel::mild)
      accept_level(FaultLevel::mild);
    for (const FaultClass fault : kFaultClasses) {
      if (!may_go_on() || !matters(fault)) continue;
      ChosenRun candidate = small_.run;
      candidate.without.push_back(fault);
      accept(std::move(candidate));
    }
  }

  // Where all else is benign, most classes that were off may as well be on: a shorter line.
  void name_all_classes() {
    if (small_.run.without.empty()) return;
    ChosenRun candidate = small_.run;
    candidate.without.clear();
    accept(std::move(candidate));
  }

  // Without faults only what the test asked for by itself can be left out.
  bool matters(FaultClass fault) const {
    const ClusterOptions options = small_.run.applied_to(runs_.task().options.cluster);
    if (std::find(options.without.begin(), options.without.end(), fault) != options.without.end())
      return false;
    if (fault == FaultClass::crashes) return options.crashes > 0;
    if (fault == FaultClass::madness) return options.mad;
    if (fault == FaultClass::partitions && options.long_partitions) return true;
    if (fault == FaultClass::pauses && options.long_pauses) return true;
    return options.faults != FaultLevel::none;
  }

  // The same run as a list of what is not benign in it. Where it does not fail without its
  // strategy, the strategy stays.
  bool list_decisions() {
    ++small_.runs;
    static_cast<void>(runs_.attempt(small_.run));
    const std::vector<Override> choices = runs_.report().choices;
    ChosenRun listed = small_.run;
    listed.otherwise = Otherwise::benign;
    listed.strategy = StrategyKind::timed_swarm;
    listed.decisions = choices;
    std::erase_if(listed.decisions, is_of_strategy);
    const std::vector<Override>& deviations = runs_.report().deviations;
    listed.decisions.insert(listed.decisions.end(), deviations.begin(), deviations.end());
    if (accept(listed)) return true;
    listed.strategy = small_.run.strategy;
    listed.decisions = choices;
    return accept(std::move(listed));
  }

  TrialRuns& runs_;
  const Duration time_;
  const WallTime watch_;
  SmallTrial small_;
};

}  // namespace

SmallTrial shrink_trial(TrialRuns& runs, const ChosenRun& run, const RunFailure& failure,
                        Duration time) {
  return TrialShrinking(runs, run, failure, time).shrink();
}

}  // namespace rehearsal::sim
