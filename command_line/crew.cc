#include "command_line/crew.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "command_line/ended_process.h"

namespace rehearsal::command_line {
namespace {

constexpr size_t kQueueMax = 2;
constexpr size_t kErrorsKept = 64 * 1024;

// Where a run is expected to hang.
constexpr double kHangSeconds = 1;

}  // namespace

Crew::Crew(std::vector<ChildSetup> setups, double run_seconds_max, Errors errors)
    : run_seconds_max_(run_seconds_max), errors_(errors) {
  members_.reserve(setups.size());
  for (ChildSetup& setup : setups) {
    setup.keeps_errors = true;
    members_.push_back({std::move(setup), nullptr, {}, {}, {}});
    start(members_.back());
  }
}

bool Crew::can_take(size_t child) const { return members_[child].tasks.size() < kQueueMax; }

double Crew::processor_seconds() const {
  double seconds = 0;
  for (const Member& member : members_) seconds += member.process->processor_seconds();
  return seconds;
}

bool Crew::busy() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return !member.tasks.empty(); });
}

void Crew::give(size_t child, size_t task, const RunSettings& settings) {
  Member& member = members_[child];
  if (member.tasks.empty()) member.since_progress = Stopwatch();
  member.tasks.push_back({task, to_json(settings)});
  if (expects_hangs_ && settings.watchdog.value_or(kHangSeconds) >= kHangSeconds)
    member.tasks.back().request["watchdog"] = kHangSeconds;
  member.process->send(member.tasks.back().request);
}

void Crew::start(Member& member) {
  member.process = std::make_unique<ChildProcess>(member.setup);
  member.errors.clear();
}

void Crew::take_errors(Member& member) {
  const std::string errors = member.process->take_errors();
  if (errors_ == Errors::shown) std::cerr << errors << std::flush;
  member.errors += errors;
  if (member.errors.size() > kErrorsKept)
    member.errors.erase(0, member.errors.size() - kErrorsKept);
}

void Crew::take_reports(size_t child, std::vector<Done>& done) {
  Member& member = members_[child];
  for (const Json& report : member.process->take_reports()) {
    done.push_back({child, member.tasks.front().number, outcome_from_json(report)});
    member.tasks.pop_front();
    member.since_progress = Stopwatch();
  }
  take_errors(member);
}

void Crew::replace(size_t child, const std::string& why, std::vector<Done>& done) {
  Member& member = members_[child];
  take_errors(member);
  sim::RunFailure failure = failure_of_process(why, member.errors);
  if (!member.tasks.empty()) {
    RunOutcome outcome;
    outcome.failure = std::move(failure);
    done.push_back({child, member.tasks.front().number, std::move(outcome)});
    member.tasks.pop_front();
  }
  start(member);
  for (const Task& task : member.tasks) member.process->send(task.request);
  member.since_progress = Stopwatch();
}

void Crew::abandon() {
  for (Member& member : members_) {
    if (member.tasks.empty()) continue;
    take_errors(member);
    member.tasks.clear();
    start(member);
  }
}

std::vector<Crew::Done> Crew::wait() {
  std::vector<ChildProcess*> processes;
  for (Member& member : members_) processes.push_back(member.process.get());
  wait_for_reports(processes);
  std::vector<Done> done;
  for (size_t child = 0; child < members_.size(); ++child) {
    take_reports(child, done);
    Member& member = members_[child];
    if (member.process->reports_ended()) {
      replace(child, describe_status(member.process->wait()), done);
    } else if (!member.tasks.empty() && member.since_progress.seconds() > run_seconds_max_) {
      replace(child, "no end after " + std::to_string(static_cast<int>(run_seconds_max_)) + " s",
              done);
    }
  }
  return done;
}

}  // namespace rehearsal::command_line
