#include "sim/hunt/chosen_run.h"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/regular_file.h"
#include "record/whole_file.h"
#include "sim/hunt/environment.h"
#include "sim/world/fault_words.h"

namespace rehearsal::sim {
namespace {

FaultLevel level_named(const std::string& text) {
  if (const auto level = fault_level_named(text)) return *level;
  throw std::invalid_argument("--faults " + text + ": give none, mild or hostile");
}

std::string joined(const std::vector<FaultClass>& classes) {
  std::string text;
  for (const FaultClass fault : classes)
    text += (text.empty() ? "" : ",") + std::string(name_of(fault));
  return text;
}

std::vector<FaultClass> classes_named(const std::string& text) {
  std::vector<FaultClass> classes;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const auto fault = fault_class_named(name);
    if (!fault) throw std::invalid_argument("--without " + name + ": there is no such class");
    classes.push_back(*fault);
  }
  return classes;
}

StrategySettings strategy_of(const std::string& text) {
  try {
    return parse_strategy(text);
  } catch (const std::invalid_argument& wrong) {
    throw std::invalid_argument("--strategy " + std::string(wrong.what()));
  }
}

std::vector<std::string> flags_of(const ChosenRun& run) {
  std::vector<std::string> flags = {"--seed " + std::to_string(run.seed.value)};
  if (run.faults) flags.push_back("--faults " + std::string(name_of(*run.faults)));
  if (!run.without.empty()) flags.push_back("--without " + joined(run.without));
  if (run.strategy.kind != StrategyKind::timed_swarm)
    flags.push_back("--strategy " + to_string(run.strategy));
  if (run.otherwise == Otherwise::benign) flags.emplace_back("--benign");
  for (const Override& decision : run.decisions) flags.push_back("--decide " + to_string(decision));
  return flags;
}

std::string value_of(const std::string& flag, std::istringstream& words) {
  std::string value;
  if (!(words >> value)) throw std::invalid_argument(flag + ": its value is missing");
  return value;
}

}  // namespace

ClusterOptions ChosenRun::applied_to(ClusterOptions options) const {
  options.strategy = strategy;
  if (faults) options.faults = *faults;
  options.without.insert(options.without.end(), without.begin(), without.end());
  options.otherwise = otherwise;
  options.overrides = decisions;
  return options;
}

std::string to_flags(const ChosenRun& run) {
  std::string text;
  for (const std::string& flag : flags_of(run)) text += (text.empty() ? "" : " ") + flag;
  return text;
}

ChosenRun parse_flags(const std::string& flags) {
  ChosenRun run;
  bool seed_given = false;
  std::istringstream words(flags);
  for (std::string flag; words >> flag;) {
    if (flag == "--seed") {
      run.seed = Seed{parse_whole(flag, value_of(flag, words))};
      seed_given = true;
    } else if (flag == "--strategy") {
      run.strategy = strategy_of(value_of(flag, words));
    } else if (flag == "--faults") {
      run.faults = level_named(value_of(flag, words));
    } else if (flag == "--without") {
      run.without = classes_named(value_of(flag, words));
    } else if (flag == "--benign") {
      run.otherwise = Otherwise::benign;
    } else if (flag == "--decide") {
      run.decisions.push_back(parse_override(value_of(flag, words)));
    } else {
      throw std::invalid_argument("'" + flag +
                                  "' is none of --seed, --faults, --without, --strategy, "
                                  "--benign, --decide");
    }
  }
  if (!seed_given) throw std::invalid_argument("it names no --seed");
  return run;
}

bool write_run(const std::string& file, const ChosenRun& run, const std::string& comment) {
  std::string text;
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);) text += "# " + line + "\n";
  for (const std::string& flag : flags_of(run)) text += flag + "\n";
  return record::write_whole_file(file, text).ok();
}

ChosenRun read_run(const std::string& file) {
  constexpr uint64_t kBytesMax = uint64_t{1} << 28;
  Result<std::string> text = read_regular(file, kBytesMax);
  if (!text.ok()) throw std::invalid_argument(file + " cannot be read: " + text.error().text);
  std::istringstream input(std::move(text).value());
  std::string flags;
  for (std::string line; std::getline(input, line);)
    if (!line.starts_with("#")) flags += line + " ";
  try {
    return parse_flags(flags);
  } catch (const std::invalid_argument& wrong) {
    throw std::invalid_argument(file + ": " + wrong.what());
  }
}

}  // namespace rehearsal::sim
