#include "command_line/hunt_search.h"

#include <algorithm>
#include <exception>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <utility>

#include "core/base/printable.h"

namespace rehearsal::command_line {

HuntSearch::HuntSearch(const Tool& tool, const HuntCommand& command, const HuntTasks& tasks)
    : command_(command),
      tasks_(tasks),
      crew_(make_crew(tool, command.jobs, Crew::Errors::shown)),
      spending_(command.budget, [this] { return crew_.processor_seconds(); }),
      overtime_(spending_, kSearchOvertimeSeconds),
      sharing_(identity_of(command).scenarios) {
  for (const RunSettings& settings : command.scenarios) runs_[settings.scenario->name] = 0;
}

std::optional<HuntSearch::Found> HuntSearch::search() {
  while (true) {
    if (!found_) hand_out();
    const bool is_first = found_ && (given_.empty() || given_.begin()->first > found_->task);
    if (is_first || !crew_.busy()) return std::move(found_);
    if (is_out_of_time()) {
      end_unfinished();
      return std::move(found_);
    }
    try {
      for (Crew::Done& done : crew_.wait()) take(done);
    } catch (const std::exception& error) {  // The find must still be reported.
      if (!found_) throw;
      progress_.clear();
      std::cerr << "hunt: the search ends early: " << printable_lines(error.what()) << std::endl;
      return std::move(found_);
    }
    show_progress();
  }
}

bool HuntSearch::is_out_of_time() { return !command_.seed_count && overtime_.over(next_task_); }

void HuntSearch::end_unfinished() {
  crew_.abandon();
  progress_.clear();
  const auto& [task, settings] = *given_.begin();
  std::cerr << "hunt: the time is up, and " << given_.size()
            << (given_.size() == 1 ? " run has not ended: " : " runs have not ended, first: ")
            << settings.scenario->name << " with seed " << settings.seed.value << std::endl;
  if (done_count_ > 0) return;
  const std::string passed = std::to_string(static_cast<int>(seconds()));
  RunOutcome outcome;
  outcome.failure = sim::RunFailure{
      kUnfinished, "the run",
      "it had not ended after " + passed + " s of the machine's time, when the hunt's was up"};
  found_ = Found{task, settings, std::move(outcome)};
}

bool HuntSearch::tasks_left() const {
  const bool may_go_on = command_.seed_count || spending_.left(next_task_);
  return may_go_on && (!tasks_.count || next_task_ < *tasks_.count);
}

RunSettings HuntSearch::next_settings() {
  if (!tasks_.nth_of) return tasks_.settings_of(next_task_);
  const auto [way, nth] = sharing_.next(next_task_);
  return tasks_.nth_of(way, nth);
}

std::vector<HuntSharing::Row> HuntSearch::shares() const {
  if (!tasks_.nth_of) return {};
  return sharing_.rows();
}

void HuntSearch::hand_out() {
  for (size_t child = 0; child < crew_.size(); ++child) {
    while (crew_.can_take(child) && tasks_left() && knows_enough()) {
      RunSettings settings = next_settings();
      if (tasks_.learns) settings = learning_.improve(next_task_, settings);
      settings.tell_features = tasks_.guided || tasks_.nth_of;
      settings.tell_coverage = command_.coverage;
      crew_.give(child, next_task_, settings);
      given_.emplace(next_task_++, std::move(settings));
    }
  }
}

void HuntSearch::take(Crew::Done& done) {
  ++done_count_;
  RunSettings settings = std::move(given_.at(done.task));
  given_.erase(done.task);
  settings.tell_features = false;
  settings.tell_coverage = false;
  count_spent(settings, done.outcome);
  if (tasks_.learns) learning_.learn(done.task, settings, done.outcome);
  if (tasks_.nth_of) sharing_.learn(done.task, done.outcome);
  if (done.outcome.ok || (found_ && found_->task < done.task)) return;
  if (!done.outcome.strategy.empty()) settings.strategy = done.outcome.strategy;
  found_ = Found{done.task, std::move(settings), std::move(done.outcome)};
}

void HuntSearch::count_spent(const RunSettings& settings, const RunOutcome& outcome) {
  ++runs_[settings.scenario->name];
  Spent& spent = spent_[strategy_label(settings)];
  ++spent.runs;
  for (const auto& [worker, decisions] : outcome.decisions) spent.decisions += decisions;
  for (const uint32_t pair : outcome.coverage) ++coverage_[pair];
}

void HuntSearch::show_progress() {
  std::ostringstream text;
  text << "hunt: " << done_count_ << " runs, " << std::fixed << std::setprecision(0)
       << static_cast<double>(done_count_) / std::max(seconds(), 1e-3) << " a second";
  if (tasks_.count) text << ", of " << *tasks_.count;
  progress_.show(text.str());
}

}  // namespace rehearsal::command_line
