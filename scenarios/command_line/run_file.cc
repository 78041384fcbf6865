#include "scenarios/command_line/run_file.h"

#include <fstream>
#include <sstream>

#include "scenarios/wrong_use.h"

namespace rehearsal::command_line {

void write_run_file(const std::string& name, const RunSettings& settings, const Failure& failure) {
  std::ofstream file(name);
  std::istringstream lines(settings.scenario->name + " FAILED: " + to_text(failure));
  for (std::string line; std::getline(lines, line);) file << "# " << line << "\n";
  const std::vector<std::string> words = run_arguments(settings);
  for (size_t i = 0; i < words.size(); ++i)
    file << (i == 0 ? "" : words[i].starts_with("--") ? "\n" : " ") << words[i];
  file << "\n";
  if (!file.flush()) throw WrongUse("--out " + name + ": cannot be written; name another file");
}

std::vector<std::string> read_run_file(const std::string& name) {
  std::ifstream file(name);
  if (!file) throw WrongUse(name + ": cannot be read; name a file that 'shrink --out' wrote");
  std::vector<std::string> words;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const size_t space = line.find(' ');
    words.push_back(line.substr(0, space));
    if (space != std::string::npos) words.push_back(line.substr(space + 1));
  }
  if (words.empty() || words.front() != "run")
    throw WrongUse(name + ": is no file of 'shrink --out': its first line is 'run NAME --seed N'");
  return words;
}

}  // namespace rehearsal::command_line
