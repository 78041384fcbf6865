#include "command_line/run_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "command_line/named_file.h"
#include "command_line/wrong_use.h"
#include "core/base/short_text.h"
#include "sim/decisions/decision_words.h"

namespace rehearsal::command_line {
namespace {

constexpr const char* kEnd = "end";
constexpr const char* kDecide = "--decide ";
constexpr const char* kWords = "  # ";  // in front of what a decision means

bool is_run(const std::string& word) { return word == "run" || word == "explore"; }

}  // namespace

std::string run_file_text(const RunSettings& settings, const sim::RunFailure& failure) {
  const std::vector<std::string> workers = worker_names(settings);
  std::ostringstream text;
  std::istringstream lines(settings.scenario->name + " FAILED: " + to_text(failure));
  for (std::string line; std::getline(lines, line);) text << "# " << line << "\n";
  RunSettings without_decisions = settings;
  without_decisions.decisions.clear();
  const std::vector<std::string> words = run_arguments(without_decisions);
  for (size_t i = 0; i < words.size(); ++i)
    text << (i == 0 ? "" : words[i].starts_with("--") ? "\n" : " ") << words[i];
  text << "\n";
  for (const sim::Override& decision : settings.decisions) {
    const std::string meaning = in_words(decision, workers);
    text << kDecide << sim::with_names(to_string(decision), workers)
         << (meaning.empty() ? "" : kWords + meaning) << "\n";
  }
  text << kEnd << "\n";
  return text.str();
}

std::vector<std::string> read_run_file(const std::string& name) {
  std::istringstream file(read_named(name, name, "a file that 'shrink --out' wrote"));
  std::vector<std::string> words;
  bool ended = false;
  for (std::string line; !ended && std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with(kDecide)) line.resize(std::min(line.size(), line.find(kWords)));
    ended = line == kEnd;
    if (ended) continue;
    const size_t space = line.find(' ');
    words.push_back(line.substr(0, space));
    if (space != std::string::npos) words.push_back(line.substr(space + 1));
    if (!is_run(words.front())) break;
  }
  if (words.empty() || !is_run(words.front()))
    throw WrongUse(name + ": is no file of 'shrink --out': its first line is 'run NAME --seed N'");
  if (!ended) throw WrongUse(name + ": is cut short: its last line is not 'end'");
  if (const auto foreign = foreign_argument(words, Net::sim))
    throw WrongUse(name + ": holds '" + short_name(*foreign) +
                   "', which 'shrink --out' never writes; take that line out");
  if (words.front() == "explore" && std::ranges::find(words, "--schedule") == words.end())
    throw WrongUse(name + ": names no --schedule; type rehearsal explore NAME to run all of them");
  return words;
}

}  // namespace rehearsal::command_line
