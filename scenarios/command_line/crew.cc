#include "scenarios/command_line/crew.h"

#include <algorithm>

namespace rehearsal::command_line {
namespace {

constexpr size_t kQueueMax = 2;
constexpr double kWaitSecondsMax = 0.2;

}  // namespace

Crew::Crew(std::vector<ChildSetup> setups, double run_seconds_max)
    : run_seconds_max_(run_seconds_max) {
  members_.reserve(setups.size());
  for (ChildSetup& setup : setups) {
    auto process = std::make_unique<ChildProcess>(setup);
    members_.push_back({std::move(setup), std::move(process), {}, {}});
  }
}

bool Crew::can_take(size_t child) const { return members_[child].tasks.size() < kQueueMax; }

bool Crew::busy() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return !member.tasks.empty(); });
}

void Crew::give(size_t child, size_t task, const RunSettings& settings) {
  Member& member = members_[child];
  if (member.tasks.empty()) member.since_progress = Stopwatch();
  member.tasks.push_back({task, to_json(settings)});
  member.process->send(member.tasks.back().request);
}

void Crew::take_reports(size_t child, std::vector<Done>& done) {
  Member& member = members_[child];
  for (const Json& report : member.process->take_reports()) {
    done.push_back({child, member.tasks.front().number, outcome_from_json(report)});
    member.tasks.pop_front();
    member.since_progress = Stopwatch();
  }
}

void Crew::replace(size_t child, const std::string& why, std::vector<Done>& done) {
  Member& member = members_[child];
  if (!member.tasks.empty()) {
    RunOutcome outcome;
    outcome.failure = Failure{"process", why, "the process of this run ended without a result"};
    done.push_back({child, member.tasks.front().number, std::move(outcome)});
    member.tasks.pop_front();
  }
  member.process = std::make_unique<ChildProcess>(member.setup);
  for (const Task& task : member.tasks) member.process->send(task.request);
  member.since_progress = Stopwatch();
}

std::vector<Crew::Done> Crew::wait() {
  std::vector<ChildProcess*> processes;
  for (Member& member : members_) processes.push_back(member.process.get());
  wait_for_reports(processes, kWaitSecondsMax);
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
