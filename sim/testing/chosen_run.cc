#include "sim/testing/chosen_run.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "sim/testing/environment.h"

namespace rehearsal::sim {
namespace {

std::vector<std::string> flags_of(const ChosenRun& run) {
  std::vector<std::string> flags = {"--seed " + std::to_string(run.seed.value)};
  if (run.strategy != StrategyKind::timed_swarm)
    flags.push_back("--strategy " + std::string(name_of(run.strategy)));
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
      const std::string name = value_of(flag, words);
      const auto strategy = strategy_named(name);
      if (!strategy) throw std::invalid_argument("--strategy " + name + ": there is none such");
      run.strategy = *strategy;
    } else if (flag == "--benign") {
      run.otherwise = Otherwise::benign;
    } else if (flag == "--decide") {
      run.decisions.push_back(parse_override(value_of(flag, words)));
    } else {
      throw std::invalid_argument("'" + flag +
                                  "' is none of --seed, --strategy, --benign, --decide");
    }
  }
  if (!seed_given) throw std::invalid_argument("it names no --seed");
  return run;
}

bool write_run(const std::string& file, const ChosenRun& run, const std::string& comment) {
  std::ofstream out(file);
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);) out << "# " << line << "\n";
  for (const std::string& flag : flags_of(run)) out << flag << "\n";
  return static_cast<bool>(out.flush());
}

ChosenRun read_run(const std::string& file) {
  std::ifstream input(file);
  if (!input) throw std::invalid_argument(file + " cannot be read");
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
