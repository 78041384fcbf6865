#include "command_line/delay_bound.h"

#include <string>
#include <vector>

#include "command_line/hunt_tasks.h"
#include "sim/strategies/strategy.h"

namespace rehearsal::command_line {
namespace {

using Skips = std::vector<uint64_t>;

std::string strategy_of(const Skips& skips) {
  std::string text = skips.empty() ? "delays:bound=0" : "delays:skip=";
  for (size_t i = 0; i < skips.size(); ++i) text += (i == 0 ? "" : ".") + std::to_string(skips[i]);
  return text;
}

// Level by level: all schedules with one deviation, then all with two, and so on.
class Search {
 public:
  Search(const Tool& tool, const HuntCommand& command, const RunSettings& settings)
      : command_(command),
        settings_(settings),
        crew_(make_crew(tool, command.jobs, Crew::Errors::shown)),
        spending_(command.budget, [this] { return crew_.processor_seconds(); }) {}

  DelaySearch run() {
    level_ = {{}};
    for (uint64_t depth = 0; depth <= command_.delay_bound; ++depth) {
      last_level_ = depth == command_.delay_bound;
      run_level();
      if (depth == 0) result_.choices = root_choices_;
      if (result_.failed || !may_go_on()) break;
      level_ = next_level(depth);
      result_.complete = level_.empty();
      if (result_.complete) break;
    }
    result_.seconds = stopwatch_.seconds();
    return std::move(result_);
  }

 private:
  bool may_go_on() const { return command_.budget.empty() || spending_.left(result_.schedules); }

  // Every shard runs the schedule without deviations, which says where the others deviate.
  bool counts(const Skips& skips) const { return !skips.empty() || command_.shard == 0; }

  bool is_out_of_time() { return !command_.budget.empty() && overtime_.over(result_.schedules); }

  void run_level() {
    next_ = 0;
    widths_.assign(last_level_ ? 0 : level_.size(), {});
    while (true) {
      hand_out();
      if (!crew_.busy()) return;
      if (is_out_of_time()) return crew_.abandon();
      for (Crew::Done& done : crew_.wait()) take(done);
      progress_.show("hunt: " + std::to_string(result_.schedules) + " schedules, of " +
                     std::to_string(level_.size()) + " with " +
                     std::to_string(level_.front().size()) + " deviations");
    }
  }

  void hand_out() {
    for (size_t child = 0; child < crew_.size(); ++child)
      while (!result_.failed && may_go_on() && next_ < level_.size() && crew_.can_take(child)) {
        crew_.give(child, next_, settings_with(level_[next_]));
        ++next_;
      }
  }

  RunSettings settings_with(const Skips& skips) const {
    RunSettings settings = settings_;
    settings.strategy = strategy_of(skips);
    settings.tell_widths = !last_level_ || skips.empty();
    return settings;
  }

  void take(Crew::Done& done) {
    const Skips& skips = level_[done.task];
    if (skips.empty()) root_choices_ = static_cast<uint64_t>(done.outcome.widths.size());
    if (counts(skips)) {
      ++result_.schedules;
      for (const auto& [worker, events] : done.outcome.decisions) result_.decisions += events;
    }
    if (!done.outcome.ok && (!result_.failed || done.task < failed_task_)) {
      failed_task_ = done.task;
      result_.failed = settings_with(skips);
      result_.failed->tell_widths = false;
      result_.outcome = done.outcome;
    }
    if (!last_level_) widths_[done.task] = std::move(done.outcome.widths);
  }

  std::vector<Skips> next_level(uint64_t depth) const {
    std::vector<Skips> next;
    if (last_level_) return next;
    for (size_t i = 0; i < level_.size(); ++i)
      for (Skips& skips : sim::one_deviation_more(level_[i], widths_[i]))
        next.push_back(std::move(skips));
    if (depth > 0 || command_.shard_count == 1) return next;
    std::vector<Skips> part;
    for (size_t i = command_.shard; i < next.size(); i += command_.shard_count)
      part.push_back(std::move(next[i]));
    return part;
  }

  const HuntCommand& command_;
  const RunSettings settings_;
  Crew crew_;
  const Spending spending_;
  Overtime overtime_{spending_, kSearchOvertimeSeconds};
  Stopwatch stopwatch_;
  ProgressLine progress_;
  bool last_level_ = false;
  std::vector<Skips> level_;
  std::vector<std::vector<uint8_t>> widths_;  // of the level's runs, unless it is the last one
  size_t next_ = 0;
  uint64_t root_choices_ = 0;
  size_t failed_task_ = 0;
  DelaySearch result_;
};

}  // namespace

DelaySearch search_delays(const Tool& tool, const HuntCommand& command,
                          const RunSettings& settings) {
  return Search(tool, command, settings).run();
}

}  // namespace rehearsal::command_line
