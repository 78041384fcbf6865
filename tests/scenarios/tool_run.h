// Starts the test's own binary as the command-line tool. A folder that uses it has a main that
// calls `run_tests_or_tool`; the tool starts itself as its children.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "command_line/process_copy.h"
#include "command_line/run_settings.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {

inline constexpr const char* kToolVariable = "REHEARSAL_TEST_TOOL";

// The tool of this binary: takes the arguments of main, and returns its exit status.
using ToolMain = int (*)(int, char**);
inline ToolMain tool_main = nullptr;

// Becomes the tool if kToolVariable is set, else runs the tests. Returns what main returns.
inline int run_tests_or_tool(int argc, char** argv, ToolMain tool) {
  if (std::getenv(kToolVariable) != nullptr) return tool(argc, argv);
  tool_main = tool;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

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

// The words that a shell makes of a text; nothing if there is more in it than words.
inline std::optional<std::vector<std::string>> shell_words(const std::string& text) {
  wordexp_t words{};
  const int status = wordexp(text.c_str(), &words, WRDE_NOCMD);
  std::optional<std::vector<std::string>> result;
  if (status == 0) result.emplace(words.we_wordv, words.we_wordv + words.we_wordc);
  if (status == 0 || status == WRDE_NOSPACE) wordfree(&words);
  return result;
}

// The variables of "NAME=value …"; nothing if it is anything else.
inline std::optional<std::map<std::string, std::string>> shell_variables(const std::string& text) {
  const auto words = shell_words(text);
  if (!words) return std::nullopt;
  std::map<std::string, std::string> variables;
  for (const std::string& word : *words) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) return std::nullopt;
    variables[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return variables;
}

// The exit status of a process as a shell tells it.
inline int shell_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The exit status of a copy of this process in which `body` runs, with these variables.
inline int status_of_copy(const std::map<std::string, std::string>& variables,
                          const std::function<int()>& body) {
  flush_streams();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    begin_copy(variables);
    end_copy(body());
  }
  int status = -1;
  return waitpid(child, &status, 0) == child ? shell_status(status) : -1;
}

// A copy of this process that is the tool. Returns its exit status.
inline int run_copy(std::vector<std::string> words, std::map<std::string, std::string> variables,
                    const TemporaryFolder& folder) {
  variables[kToolVariable] = "1";
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string out = folder.file("out");
  const std::string err = folder.file("err");
  flush_streams();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    begin_copy(variables);
    end_copy(tool_main(static_cast<int>(words.size()), arguments.data()));
  }
  int status = -1;
  return waitpid(child, &status, 0) == child ? shell_status(status) : -1;
}

// A process that a shell starts, for what is more than words. Returns its exit status.
inline int run_in_shell(const std::string& binary, const std::string& arguments,
                        const std::string& environment, const TemporaryFolder& folder) {
  std::ostringstream command;
  command << kToolVariable << "=1 " << environment << " '" << binary << "' " << arguments << " >'"
          << folder.file("out") << "' 2>'" << folder.file("err") << "' </dev/null";
  const int status = std::system(command.str().c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Runs the tool in a process of its own and waits for it. `environment` is "NAME=value …" for a
// shell.
inline ToolRun run_tool(const std::string& arguments, const std::string& environment = "") {
  const TemporaryFolder folder;
  const std::string binary = std::filesystem::read_symlink("/proc/self/exe");
  auto words = shell_words(arguments);
  auto variables = shell_variables(environment);
  int status = -1;
  if (words && variables && can_be_copied()) {
    words->insert(words->begin(), binary);
    status = run_copy(std::move(*words), std::move(*variables), folder);
  } else {
    status = run_in_shell(binary, arguments, environment, folder);
  }
  return {status, as_rehearsal(read_whole_file(folder.file("out")), binary),
          as_rehearsal(read_whole_file(folder.file("err")), binary)};
}

}  // namespace rehearsal::command_line
