// Goal: a process that cannot be started says why, and nobody takes that for a failure of a run.
// Method: children to whom the system refuses something.
#include "command_line/child_process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "command_line/crew.h"
#include "command_line/ended_process.h"
#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

// The last words of a child that ends with status 127.
std::string words_of(ChildSetup setup) {
  setup.arguments = {kChildCommand};
  setup.keeps_errors = true;
  ChildProcess child(setup);
  const int status = child.wait();
  return status == 127 ? child.take_errors() : describe_status(status);
}

TEST(ChildProcess, ThatCannotBeStartedSaysWhy) {
  EXPECT_EQ(words_of({.directory = "/no/such"}),
            "a process of this tool cannot be started: /no/such: No such file or directory\n");
  // One variable alone is more than the system hands on.
  EXPECT_EQ(words_of({.environment = {{"REHEARSAL_LARGE", std::string(200'000, 'x')}}}),
            "a process of this tool cannot be started: its binary: Argument list too long\n");
}

TEST(ChildProcess, NamesTheLimitOfDescriptorsThatIsTooLow) {
  // Method: a copy of this process, in which ten are all that there may be.
  const TemporaryFolder folder;
  const std::string told = folder.file("told");
  const int status = status_of_copy({}, [&] {
    close_range(STDERR_FILENO + 1, ~0U, 0);
    const rlimit few{.rlim_cur = 10, .rlim_max = 10};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 90;
    const std::string words = words_of({});
    std::ofstream(told) << words;
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_whole_file(told),
            "a process of this tool cannot be started: its descriptors (ulimit -n): Too many open "
            "files\n");
}

TEST(ChildProcess, ThatCannotBeStartedIsNoFailureOfARun) {
  const std::string line = std::string(kNotStartedLine) + "its binary: Cannot allocate memory";
  try {
    static_cast<void>(failure_of_process("exit status 127", "a run begins\n" + line + "\n"));
    FAIL() << "it is a failure";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), line);
  }
  // The program's own status is its own affair.
  EXPECT_EQ(failure_of_process("exit status 127", "a run begins\n").object, "exit status 127");
  Crew crew({{.arguments = {kChildCommand}, .directory = "/no/such"}}, kRunSecondsMax,
            Crew::Errors::hidden);
  const auto wait_for_ever = [&crew] {
    while (true) static_cast<void>(crew.wait());
  };
  EXPECT_THROW(wait_for_ever(), std::runtime_error);
}

}  // namespace
}  // namespace rehearsal::command_line
