#include "command_line/strategy_flag.h"

#include <algorithm>
#include <stdexcept>

#include "command_line/suggestion.h"
#include "command_line/wrong_use.h"
#include "sim/strategies/strategy.h"

namespace rehearsal::command_line {

std::string checked_strategy(const std::string& command, const std::string& text,
                             const Backends& backends) {
  const std::string name = text.substr(0, text.find(':'));
  std::vector<std::string> known = backends.strategies;
  if (command == "hunt" && backends.portfolio) {
    if (text == "portfolio") return "";
    if (text == kGuided) return text;
    known.insert(known.end(), {"portfolio", std::string(kGuided)});
  } else if (name == kGuided) {
    throw WrongUse("--strategy guided: goes on from other runs, which only 'hunt' has; what it " +
                   std::string("found is repeated with --redraw"));
  }
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw WrongUse("--strategy " + name + ": " + suggestion(name, known));
  try {
    if (backends.check_strategy) backends.check_strategy(text);
  } catch (const std::invalid_argument& wrong) {
    throw WrongUse(std::string("--strategy ") + wrong.what());
  }
  return text;
}

void check_redraw(const std::string& text, const Backends& backends) {
  try {
    if (backends.check_redraw) backends.check_redraw(text);
  } catch (const std::invalid_argument& wrong) {
    throw WrongUse(std::string("--redraw ") + wrong.what());
  }
}

std::optional<uint64_t> delay_bound_of(const std::string& strategy) {
  if (!strategy.starts_with("delays:")) return std::nullopt;
  const sim::StrategySettings settings = sim::parse_strategy(strategy);
  return settings.skips.empty() ? settings.bound : std::nullopt;
}

}  // namespace rehearsal::command_line
