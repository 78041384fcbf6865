#include "command_line/determinism.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "command_line/crew.h"
#include "command_line/temporary_folder.h"
#include "sim/world/event_causes.h"

namespace rehearsal::command_line {
namespace {

constexpr int kPairsOfNewProcesses = 8;
constexpr size_t kCauses = 10;
constexpr const char* kRunHasEnded = "(the run has ended)";

// The last run of a process, with a trace of it in a file.
struct TracedRun {
  RunOutcome outcome;
  std::string file;
};

TracedRun run_traced(const ChildSetup& setup, Runs runs, const std::string& file) {
  runs.back().trace_file = file;
  Crew crew({setup}, kRunSecondsMax, Crew::Errors::shown);
  size_t given = 0;
  while (true) {
    for (; given < runs.size() && crew.can_take(0); ++given) crew.give(0, given, runs[given]);
    for (Crew::Done& done : crew.wait())
      if (done.task + 1 == runs.size()) return {std::move(done.outcome), file};
  }
}

// The first event in which two traces differ, if any. Traces may be larger than memory.
std::optional<Difference> different_event(const std::string& first_file,
                                          const std::string& second_file) {
  std::ifstream first(first_file);
  std::ifstream second(second_file);
  sim::EventCauses causes;
  Difference difference{.kind = Difference::Kind::event};
  while (true) {
    ++difference.event;
    const bool one = static_cast<bool>(std::getline(first, difference.first));
    const bool other = static_cast<bool>(std::getline(second, difference.second));
    if (!one && !other) return std::nullopt;
    if (one && other && difference.first == difference.second) {
      causes.add(difference.first);
      continue;
    }
    const std::string& line = one ? difference.first : difference.second;
    if (const auto parsed = sim::parse_event_line(line)) difference.key = key_of(*parsed);
    difference.causes = causes.of(line, kCauses);
    if (!one) difference.first = kRunHasEnded;
    if (!other) difference.second = kRunHasEnded;
    return difference;
  }
}

std::string short_text(const RunOutcome& outcome) {
  if (outcome.ok) return "holds, result digest " + outcome.results.digest();
  return text_to_compare(outcome.failure.value_or(sim::RunFailure{}));
}

std::string shown(double number) { return Json(number).dump(); }
std::string shown(const TensorDigest& tensor) {
  return Json(tensor.shape).dump() + " " + tensor.type + " " + tensor.digest;
}

// The first entry of the one map that the other does not have like this.
template <class Map>
std::optional<Difference> different_entry(const std::string& kind, const Map& first,
                                          const Map& second) {
  for (const auto& [name, value] : first) {
    const auto found = second.find(name);
    const std::string other = found == second.end() ? "(missing)" : shown(found->second);
    if (other != shown(value))
      return Difference{.kind = Difference::Kind::result,
                        .key = kind + " " + name,
                        .first = shown(value),
                        .second = other};
  }
  return std::nullopt;
}

// The first result that differs, or how the run ended.
Difference different_result(const RunOutcome& first, const RunOutcome& second) {
  if (first.ok == second.ok) {
    const Results& one = first.results;
    const Results& other = second.results;
    if (auto number = different_entry("number", one.numbers(), other.numbers())) return *number;
    if (auto tensor = different_entry("tensor", one.tensors(), other.tensors())) return *tensor;
  }
  return {.kind = Difference::Kind::result,
          .key = "the end of the run",
          .first = short_text(first),
          .second = short_text(second)};
}

// A trace that was cut off would differ where it ends.
std::optional<Difference> compare(const TracedRun& first, const TracedRun& second) {
  for (const RunOutcome* outcome : {&first.outcome, &second.outcome})
    if (!outcome->unwritten.empty()) throw std::runtime_error(outcome->unwritten);
  if (auto difference = different_event(first.file, second.file)) return difference;
  if (same_outcome(first.outcome, second.outcome)) return std::nullopt;
  return different_result(first.outcome, second.outcome);
}

// Looks for what differs because of what ran before in a process.
class EarlierRuns {
 public:
  EarlierRuns(const RunSettings& last, ChildSetup setup, const TemporaryFolder& folder)
      : last_(last), setup_(std::move(setup)), folder_(folder) {
    alone_ = run_traced(setup_, {last_}, folder_.file("alone"));
  }

  // The difference between the last run alone and behind these; with the fewest of them that
  // halving finds.
  std::optional<Difference> find(Runs earlier) {
    std::optional<Difference> found = try_behind(earlier);
    while (found && earlier.size() > 1) {
      const auto middle = earlier.begin() + static_cast<std::ptrdiff_t>(earlier.size() / 2);
      Runs half(middle, earlier.end());
      auto smaller = try_behind(half);
      if (!smaller) {
        half.assign(earlier.begin(), middle);
        smaller = try_behind(half);
      }
      if (!smaller) break;
      found = std::move(smaller);
      earlier = std::move(half);
    }
    return found;
  }

 private:
  std::optional<Difference> try_behind(const Runs& earlier) {
    if (earlier.empty()) return std::nullopt;
    Runs runs = earlier;
    runs.push_back(last_);
    auto difference = compare(alone_, run_traced(setup_, runs, folder_.file("behind")));
    if (difference)
      for (const RunSettings& run : earlier) difference->after_seeds.push_back(run.seed.value);
    return difference;
  }

  const RunSettings last_;
  const ChildSetup setup_;
  const TemporaryFolder& folder_;
  TracedRun alone_;
};

// The last word of an event line is what the fingerprint is after it.
bool differ_in_fingerprint_only(const std::string& one, const std::string& other) {
  const size_t end = one.rfind(' ');
  return end != std::string::npos && one.substr(0, end) == other.substr(0, other.rfind(' '));
}

std::string seeds_text(const std::vector<uint64_t>& seeds) {
  constexpr size_t kShown = 5;
  std::string text = seeds.size() == 1 ? "seed" : std::to_string(seeds.size()) + " seeds:";
  for (size_t i = 0; i < std::min(kShown, seeds.size()); ++i)
    text += (i > 0 ? ", " : " ") + std::to_string(seeds[i]);
  return seeds.size() > kShown ? text + ", …" : text;
}

}  // namespace

bool same_outcome(const RunOutcome& one, const RunOutcome& other) {
  // Neither has anything but a failure.
  if (one.failure && other.failure && ends_process(*one.failure))
    return text_to_compare(*one.failure) == text_to_compare(*other.failure);
  return to_json(one).dump() == to_json(other).dump();
}

Difference find_difference(const Surroundings& surroundings, const Runs& first,
                           const Runs& second) {
  const TemporaryFolder folder;
  const RunSettings& last = first.back();
  for (int pair = 0; pair < kPairsOfNewProcesses; ++pair) {
    const auto difference = compare(run_traced(surroundings.first, {last}, folder.file("first")),
                                    run_traced(surroundings.second, {last}, folder.file("second")));
    if (difference) return *difference;
  }
  for (const auto& [setup, runs] :
       {std::pair(surroundings.first, first), std::pair(surroundings.second, second)}) {
    EarlierRuns earlier(last, setup, folder);
    if (const auto difference = earlier.find({runs.begin(), runs.end() - 1})) return *difference;
  }
  return {};
}

std::string to_text(const Difference& difference) {
  if (difference.kind == Difference::Kind::vanished)
    return "two runs differed, but no further ones, neither alone nor after the same other runs: "
           "something outside the process decides, now and then";
  if (difference.kind == Difference::Kind::untold)
    return "two runs differed; in what cannot be said: " + difference.why;
  const bool alone = difference.after_seeds.empty();
  const std::string one = alone ? "first:  " : "alone:  ";
  const std::string other = alone ? "second: " : "after:  ";
  std::string text;
  if (!alone)
    text = "the run leaves something behind in its process: after " +
           seeds_text(difference.after_seeds) + " it differs from a run alone. ";
  if (difference.kind == Difference::Kind::result) {
    text += "all events are equal, but " + difference.key + " differs";
  } else {
    text += "event " + std::to_string(difference.event) + " differs";
  }
  if (differ_in_fingerprint_only(difference.first, difference.second))
    text += " (in how many choices were made before it)";
  text += ":\n  " + one + difference.first + "\n  " + other + difference.second;
  if (difference.kind == Difference::Kind::event && !difference.key.empty())
    text += "\n  key:    " + difference.key;
  if (!difference.causes.empty()) text += "\nit follows from:";
  for (const std::string& cause : difference.causes) text += "\n  " + cause;
  return text;
}

Json to_json(const Difference& difference) {
  constexpr const char* kKinds[] = {"event", "result", "vanished", "untold"};
  Json json{{"kind", kKinds[static_cast<size_t>(difference.kind)]}};
  if (difference.kind == Difference::Kind::event) json["event"] = difference.event;
  json["key"] = difference.key;
  json["first"] = difference.first;
  json["second"] = difference.second;
  json["causes"] = difference.causes;
  json["after_seeds"] = difference.after_seeds;
  return json;
}

}  // namespace rehearsal::command_line
