// Starts the test's own binary as the command-line tool. A folder that uses it has a main that
// becomes the tool when `kToolVariable` is set; the tool starts itself as its children.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "command_line/run_settings.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {

inline constexpr const char* kToolVariable = "REHEARSAL_TEST_TOOL";

struct ToolRun {
  int status = -1;
  std::string out;
  std::string err;

  [[nodiscard]] std::vector<std::string> out_lines() const { return lines_of(out); }
  [[nodiscard]] std::vector<std::string> err_lines() const { return lines_of(err); }
  [[nodiscard]] Json json() const { return Json::parse(out); }

 private:
  static std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
};

// The words of a tool as that of this repository would say them: in place of the name of the test's
// binary, but not of its path, stands `rehearsal`.
inline std::string as_rehearsal(const std::string& said, const std::filesystem::path& binary) {
  static const std::string unnamed = "(^|[^/A-Za-z0-9_])";
  const std::regex name(unnamed + binary.filename().string() + "(?=[ :,])");
  return std::regex_replace(said, name, "$1rehearsal");
}

// Runs the tool in a process of its own and waits for it. `environment` is "NAME=value …" for a
// shell.
inline ToolRun run_tool(const std::string& arguments, const std::string& environment = "") {
  const TemporaryFolder folder;
  const std::string binary = std::filesystem::read_symlink("/proc/self/exe");
  std::ostringstream command;
  command << kToolVariable << "=1 " << environment << " '" << binary << "' " << arguments << " >'"
          << folder.file("out") << "' 2>'" << folder.file("err") << "' </dev/null";
  const int status = std::system(command.str().c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          as_rehearsal(read_whole_file(folder.file("out")), binary),
          as_rehearsal(read_whole_file(folder.file("err")), binary)};
}

}  // namespace rehearsal::command_line
