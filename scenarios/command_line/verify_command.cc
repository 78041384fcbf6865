// `verify`: every seed twice, in two processes that differ in everything that must not matter.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/crew.h"

namespace rehearsal::command_line {
namespace {

constexpr double kRunSecondsMax = 300;

// The second process: other bytes in fresh memory, other addresses of the stack and the heap,
// another locale, time zone and directory, other numbers of threads asked for.
ChildSetup perturbed_setup() {
  return {.arguments = {kChildCommand},
          .environment = {{"MALLOC_PERTURB_", "165"},
                          {"MALLOC_ARENA_MAX", "1"},
                          {"MALLOC_TOP_PAD_", "1048576"},
                          {"LC_ALL", "C.UTF-8"},
                          {"LANGUAGE", "de"},
                          {"TZ", "Pacific/Chatham"},
                          {"OMP_NUM_THREADS", "3"},
                          {"MKL_NUM_THREADS", "3"},
                          {"REHEARSAL_PADDING", std::string(4093, 'x')}},
          .directory = "/"};
}

ChildSetup plain_setup() {
  return {.arguments = {kChildCommand}, .environment = {}, .directory = {}};
}

// Everything about an outcome that a second run must repeat.
std::string repeatable(const RunOutcome& outcome) { return to_json(outcome).dump(); }

struct Pair {
  std::optional<RunOutcome> first;
  std::optional<RunOutcome> second;
};

RunSettings with_seed(const VerifyCommand& command, uint64_t index) {
  RunSettings settings = command.settings;
  settings.seed = Seed{command.first_seed + index};
  return settings;
}

// The second process takes the seeds from the last to the first: what an earlier run leaves behind
// in a process would show, too.
std::vector<Pair> run_all(const VerifyCommand& command) {
  Crew crew({plain_setup(), perturbed_setup()}, kRunSecondsMax);
  ProgressLine progress;
  std::vector<Pair> pairs(command.seed_count);
  std::vector<uint64_t> given(crew.size(), 0);
  size_t done_count = 0;
  while (true) {
    for (size_t child = 0; child < crew.size(); ++child) {
      while (crew.can_take(child) && given[child] < command.seed_count) {
        const uint64_t index = child == 0 ? given[child] : command.seed_count - 1 - given[child];
        crew.give(child, index, with_seed(command, index));
        ++given[child];
      }
    }
    if (!crew.busy()) return pairs;
    for (Crew::Done& done : crew.wait()) {
      Pair& pair = pairs[done.task];
      (done.child == 0 ? pair.first : pair.second) = std::move(done.outcome);
      ++done_count;
    }
    progress.show("verify: " + std::to_string(done_count) + " of " +
                  std::to_string(2 * command.seed_count) + " runs");
  }
}

class TraceFolder {
 public:
  TraceFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rehearsal-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~TraceFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void run_traced(const ChildSetup& setup, RunSettings settings, const std::string& file) {
  settings.trace_file = file;
  Crew crew({setup}, kRunSecondsMax);
  crew.give(0, 0, settings);
  while (crew.wait().empty()) {
  }
}

// The first event in which two fresh runs differ, in words.
std::string first_differing_event(const RunSettings& settings) {
  const TraceFolder folder;
  run_traced(plain_setup(), settings, folder.file("first"));
  run_traced(perturbed_setup(), settings, folder.file("second"));
  std::ifstream first(folder.file("first"));
  std::ifstream second(folder.file("second"));
  for (size_t number = 1;; ++number) {
    std::string first_line = "(the end)";
    std::string second_line = "(the end)";
    const bool first_there = static_cast<bool>(std::getline(first, first_line));
    const bool second_there = static_cast<bool>(std::getline(second, second_line));
    if (!first_there && !second_there) {
      return "two more runs, each alone in its process, were equal: what earlier runs leave behind "
             "in "
             "the process matters";
    }
    if (!first_there) first_line = "(the end)";
    if (!second_there) second_line = "(the end)";
    if (first_line != second_line) {
      return "event " + std::to_string(number) + " differs:\n  first:  " + first_line +
             "\n  second: " + second_line;
    }
  }
}

int report_difference(const Tool& tool, const RunSettings& settings) {
  const std::string difference = first_differing_event(settings);
  if (tool.json) {
    const Json json{{"command", "verify"},
                    {"scenario", settings.scenario->name},
                    {"ok", false},
                    {"seed", settings.seed.value},
                    {"failure", to_json({"determinism", "", difference},
                                        replay_command(tool.program, settings))}};
    std::cout << json.dump(2) << std::endl;
  }
  print_failure(tool, settings, {"determinism", "", difference});
  return kNondeterminism;
}

}  // namespace

int verify(const Tool& tool, const VerifyCommand& command) {
  const Stopwatch stopwatch;
  const std::vector<Pair> pairs = run_all(command);
  for (uint64_t index = 0; index < pairs.size(); ++index) {
    if (repeatable(*pairs[index].first) != repeatable(*pairs[index].second)) {
      return report_difference(tool, with_seed(command, index));
    }
  }
  const auto failed =
      std::find_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return !pair.first->ok; });
  Json json{{"command", "verify"},
            {"scenario", command.settings.scenario->name},
            {"ok", failed == pairs.end()},
            {"seeds", command.seed_count},
            {"wall_seconds", stopwatch.seconds()}};
  if (failed == pairs.end()) {
    if (tool.json) {
      std::cout << json.dump(2) << std::endl;
    } else {
      std::cout << "verify: " << command.settings.scenario->name << ", " << command.seed_count
                << " seeds, each twice: equal" << std::endl;
    }
    return kHolds;
  }
  const RunSettings settings = with_seed(command, static_cast<uint64_t>(failed - pairs.begin()));
  const Failure failure = failed->first->failure.value_or(Failure{});
  json["seed"] = settings.seed.value;
  json["failure"] = to_json(failure, replay_command(tool.program, settings));
  if (tool.json) std::cout << json.dump(2) << std::endl;
  print_failure(tool, settings, failure);
  return kFailed;
}

}  // namespace rehearsal::command_line
