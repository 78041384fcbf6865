#include "tests/scenarios/rref_fork/explored_stories.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/rref_fork/rref_fork.h"
#include "sim/explore/dpor.h"
#include "sim/explore/explorer.h"
#include "sim/explore/runs.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::sim::explore {

using nlohmann::json;

// The results that one process tells the other.
void to_json(json& out, const Seen& seen) { out = {seen.together, seen.at, seen.after}; }
void from_json(const json& in, Seen& seen) {
  in.at(0).get_to(seen.together);
  in.at(1).get_to(seen.at);
  in.at(2).get_to(seen.after);
}
void to_json(json& out, const Explored& explored) {
  out = {explored.one_reference, explored.any, explored.failures, explored.schedules};
}
void from_json(const json& in, Explored& explored) {
  in.at(0).get_to(explored.one_reference);
  in.at(1).get_to(explored.any);
  in.at(2).get_to(explored.failures);
  in.at(3).get_to(explored.schedules);
}

namespace {

struct Story {
  const char* name;
  std::vector<std::string> options;
  bool one_reference = true;
};

const std::vector<Story>& stories() {
  static const std::vector<Story> all = {
      {"created, passed on once and dropped", {}},
      {"passed on twice, dropped by one, kept by the other",
       {"waits=1", "keeps=1", "forks=2", "use=5"}},
      {"passed on twice in one call", {"waits=1", "copies=2"}},
      {"fetched while it is passed on", {"waits=1", "keeps=1", "fetches=1", "use=4"}},
      {"passed on to be fetched", {"waits=1", "use=2"}},
      {"fetched twice while it is created", {"forks=0", "fetches=2", "large=1"}},
      {"passed on by a user", {"waits=1", "use=3"}},
      {"passed on by the owner", {"waits=1", "keeps=1", "forks=0", "owner_use=2"}},
      {"two references", {"references=2", "forks=0"}, false},
  };
  return all;
}

void include(Matrix& seen, const Pairs& pairs) {
  for (size_t one = 0; one < kLetters; ++one)
    for (size_t other = 0; other < kLetters; ++other)
      if (pairs[one][other] > 0) seen[one][other] = true;
}

void include(Seen& seen, const UnderWay& under_way) {
  include(seen.together, under_way.together());
  for (const Transition::Kind fault : kFaults) {
    include(seen.at[fault], under_way.with(fault).at);
    include(seen.after[fault], under_way.with(fault).after);
  }
}

std::string command_of(const Story& story, const Schedule& schedule) {
  std::string command = "rehearsal explore rref_fork";
  for (const std::string& option : story.options) command += " --set " + option;
  return command + " --schedule '" + to_string(schedule) + "'";
}

// Runs all there are with these faults. Returns how many; 0 if one fails.
uint64_t explore_all(const Program& program, const std::vector<Transition>& faults,
                     const Story& story, Explored& explored) {
  Dpor search;
  UnderWay under_way(search);
  const ExploreOptions options{.traces = {&under_way}};
  Runs runs(program, options);
  while (search.begin_run()) {
    under_way.begin_run(faults);
    const std::optional<RunReport> report = runs.run(faults, under_way);
    if (report && !report->ok) {
      explored.failures.push_back(describe_failure(*report) + "\n" +
                                  command_of(story, schedule_of(faults, search)));
      return 0;
    }
    if (report) under_way.count();
    search.end_run();
  }
  include(explored.any, under_way);
  if (story.one_reference) include(explored.one_reference, under_way);
  return search.schedules();
}

// One part of the runs: every so many sets of faults of a story.
Explored explore_part(size_t part, size_t parts) {
  Explored explored;
  const Scenario scenario = rref_fork_scenario();
  size_t number = 0;
  for (const Story& story : stories()) {
    Reporter reporter;
    const Options options = scenario.options.parse(story.options, "tiny");
    const Program program = scenario.program({options, Seed{1}, reporter});
    uint64_t& schedules = explored.schedules[story.name];
    for (const auto& faults : fault_sets(static_cast<uint32_t>(program.names().size()), 1))
      if (number++ % parts == part) schedules += explore_all(program, faults, story, explored);
  }
  return explored;
}

void add(Matrix& sum, const Matrix& seen) {
  for (size_t one = 0; one < kLetters; ++one)
    for (size_t other = 0; other < kLetters; ++other)
      sum[one][other] = sum[one][other] || seen[one][other];
}

void add(Seen& sum, const Seen& seen) {
  add(sum.together, seen.together);
  for (const auto& [fault, matrix] : seen.at) add(sum.at[fault], matrix);
  for (const auto& [fault, matrix] : seen.after) add(sum.after[fault], matrix);
}

void add(Explored& sum, const Explored& part) {
  add(sum.one_reference, part.one_reference);
  add(sum.any, part.any);
  sum.failures.insert(sum.failures.end(), part.failures.begin(), part.failures.end());
  for (const auto& [story, schedules] : part.schedules) sum.schedules[story] += schedules;
}

Explored explore_stories() {
  constexpr size_t kParts = 2;
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (size_t part = 0; part < kParts; ++part) {
    const pid_t child = fork();
    if (child == 0) {
      std::ofstream(folder.file(std::to_string(part))) << json(explore_part(part, kParts)).dump();
      _exit(0);
    }
    children.push_back(child);
  }
  Explored all;
  for (size_t part = 0; part < kParts; ++part) {
    int status = 0;
    if (waitpid(children[part], &status, 0) == children[part] && status == 0)
      add(all, json::parse(read_whole_file(folder.file(std::to_string(part)))).get<Explored>());
    else
      all.failures.push_back("a process that explores ended with status " + std::to_string(status));
  }
  return all;
}

}  // namespace

const Explored& explored() {
  static const Explored once = explore_stories();
  return once;
}

}  // namespace rehearsal::sim::explore
