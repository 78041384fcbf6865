#include "sim/explore/explorer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/explore/given_schedule.h"
#include "sim/explore/runs.h"

namespace rehearsal::sim::explore {
namespace {

using Kind = Transition::Kind;

std::vector<Transition> all_faults(uint32_t workers) {
  std::vector<Transition> faults;
  for (uint32_t one = 0; one < workers; ++one)
    for (uint32_t other = one + 1; other < workers; ++other)
      faults.push_back({Kind::cut, one, other});
  for (uint32_t one = 0; one < workers; ++one) faults.push_back({Kind::crash, one, 0});
  for (uint32_t one = 0; one < workers; ++one)
    for (uint32_t other = 0; other < workers; ++other)
      if (one != other) faults.push_back({Kind::give_up, one, other});
  return faults;
}

// The report with the failure that the run's own oracles, or else the caller, found.
RunReport judged(RunReport report, const ExploreOptions& options, const Schedule& schedule) {
  if (!report.ok || !options.judge) return report;
  report.failure = options.judge(schedule);
  report.ok = !report.failure.has_value();
  return report;
}

}  // namespace

std::vector<std::vector<Transition>> fault_sets(uint32_t workers, size_t size_max) {
  const std::vector<Transition> faults = all_faults(workers);
  std::vector<std::vector<Transition>> sets = {{}};
  size_t begin = 0;
  for (size_t size = 1; size <= size_max; ++size) {
    const size_t end = sets.size();
    for (size_t i = begin; i < end; ++i)
      for (const Transition& fault : faults) {
        if (!sets[i].empty() && fault <= sets[i].back()) continue;
        std::vector<Transition> larger = sets[i];
        larger.push_back(fault);
        sets.push_back(std::move(larger));
      }
    begin = end;
  }
  return sets;
}

Schedule schedule_of(const std::vector<Transition>& faults, const Dpor& dpor) {
  Schedule schedule{.faults = faults};
  const std::vector<Dpor::Pick> picks = dpor.schedule();
  for (size_t step = 0; step < picks.size(); ++step) {
    if (picks[step].place != 0) schedule.deviations.push_back({step, {}, picks[step].place});
    const std::vector<uint64_t>& choices = picks[step].choices;
    for (size_t i = 0; i < choices.size(); ++i)
      if (choices[i] != 0) schedule.deviations.push_back({step, i, choices[i]});
  }
  return schedule;
}

uint64_t Exploration::schedules() const {
  return std::accumulate(rows.begin(), rows.end(), uint64_t{0},
                         [](uint64_t sum, const Row& row) { return sum + row.schedules; });
}

Exploration explore(const Program& program, const ExploreOptions& options) {
  Exploration found;
  const auto workers = static_cast<uint32_t>(program.names().size());
  const auto sets = options.only.empty() ? fault_sets(workers, options.faults_max) : options.only;
  ExploreOptions::Progress progress{.fault_sets_all = sets.size()};
  bool over = false;
  Runs runs(program, options, [&options, &progress, &over] {
    over = over || (options.go_on && !options.go_on(progress));
    return over;
  });
  for (size_t set = 0; set < sets.size(); ++set) {
    const std::vector<Transition>& faults = sets[set];
    found.rows.push_back({.faults = faults});
    Exploration::Row& row = found.rows.back();
    Dpor dpor;
    while (dpor.begin_run()) {
      const std::optional<RunReport> report = runs.run(faults, dpor);
      if (over) return found;
      const Schedule schedule = schedule_of(faults, dpor);
      if (report) {
        RunReport judgement = judged(*report, options, schedule);
        if (!judgement.ok) {
          found.failing = schedule;
          found.report = std::move(judgement);
          ++row.schedules;
          return found;
        }
      }
      dpor.end_run();
      row.schedules = dpor.schedules();
      row.stopped = dpor.stopped();
      row.steps = dpor.steps();
      progress.fault_sets = set;
      progress.schedules = found.schedules();
      progress.part = dpor.progress();
      if (options.go_on && !options.go_on(progress)) return found;
    }
  }
  found.complete = true;
  return found;
}

RunReport run_schedule(const Program& program, const ExploreOptions& options,
                       const Schedule& schedule) {
  GivenSchedule guide(schedule);
  const std::optional<RunReport> report = Runs(program, options).run(schedule.faults, guide);
  if (report && guide.all_used()) return judged(*report, options, schedule);
  RunReport unfit;
  if (report) unfit = *report;
  unfit.ok = false;
  unfit.failure = {"schedule", to_string(schedule), "this run is not there any more"};
  return unfit;
}

Schedule shrink_schedule(const Program& program, const ExploreOptions& options, Schedule failing) {
  const RunReport as_found = run_schedule(program, options, failing);
  if (as_found.ok) return failing;
  const auto fails_alike = [&](const Schedule& candidate) {
    const RunReport report = run_schedule(program, options, candidate);
    return !report.ok && report.failure->oracle == as_found.failure->oracle;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = failing.deviations.size(); i-- > 0;) {
      Schedule candidate = failing;
      candidate.deviations.erase(candidate.deviations.begin() + static_cast<ptrdiff_t>(i));
      if (!fails_alike(candidate)) continue;
      failing = std::move(candidate);
      smaller = true;
    }
  }
  return failing;
}

}  // namespace rehearsal::sim::explore
