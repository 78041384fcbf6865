#include "command_line/program_name.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace rehearsal::command_line {
namespace {

constexpr size_t kContinuedFrom = 20;  // spaces

// Blanks at its beginning.
size_t indentation(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

}  // namespace

std::string program_name(const std::string& started_as) {
  const std::string name = started_as.substr(started_as.rfind('/') + 1);
  return name.empty() ? "rehearsal" : name;
}

std::string spoken_by(const std::string& program, const std::string& text) {
  static const std::regex named(
      "\\brehearsal(?=( (COMMAND|list|run|hunt|merge|shrink|replay|explore|report|verify|worker"
      "|--help|--version))\\b)|^rehearsal(?=:)");
  const std::string written = "rehearsal";
  std::istringstream lines(text);
  std::string spoken;
  bool shifts = false;  // what goes on from the line before
  for (std::string line; std::getline(lines, line);) {
    const std::string other = std::regex_replace(line, named, program);
    if (shifts && other == line && indentation(line) >= kContinuedFrom) {
      line.insert(0, program.size(), ' ');
      line.erase(0, written.size());
      spoken += line;
    } else {
      shifts = other != line && line.compare(indentation(line), written.size(), written) == 0;
      spoken += other;
    }
    if (!lines.eof()) spoken += '\n';
  }
  return spoken;
}

}  // namespace rehearsal::command_line
