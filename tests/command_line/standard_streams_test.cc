// Standard input, output and error that are closed, or cannot be written.
#include "command_line/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

// Behind it follow the words of a command whose standard output is this file.
std::string with_output_to(const std::string& file) {
  return "sh -c 'exec \"$0\" \"$@\" >" + file + "'";
}

TEST(StandardOutput, ThatCannotBeWrittenFailsWhatHolds) {
  // Goal: nobody takes a result that was not written for a good one; a found failure keeps its own
  // status. Method: a device that is full.
  const std::string full = with_output_to("/dev/full");
  for (const std::string command :
       {"run toy --seed 6", "run toy --seed 6 --json", "list", "--version", "hunt --help",
        "verify toy --seeds 2", "hunt toy --seeds 4 --jobs 1 --json"}) {
    const ToolRun run = run_tool(command, full);
    EXPECT_EQ(run.status, 1) << command;
    EXPECT_TRUE(run.err.ends_with(
        "rehearsal: standard output cannot be written: No space left on device\n"))
        << command << ": " << run.err;
  }
  EXPECT_EQ(run_tool("verify toy --seeds 5 --set drift_at=4", full).status, 3);
}

TEST(StandardOutput, WhoseReaderIsGoneEndsQuietlyAndNotWell) {
  // Goal: as other tools in front of `head`. Method: a pipe without a reader, and the signal
  // ignored, as it is once the tool has started a child.
  const TemporaryFolder folder;
  const std::string told = folder.file("told");
  const int status = status_of_copy({{kToolVariable, "1"}}, [&] {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return 90;
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
    dup2(open(told.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    signal(SIGPIPE, SIG_IGN);
    std::array<std::string, 4> words = {"rehearsal", "run", "toy", "--json"};
    std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                      words[3].data(), nullptr};
    return tool_main(4, arguments.data());
  });
  EXPECT_EQ(status, 1);
  EXPECT_EQ(read_whole_file(told), "line of seed 1\n");
}

TEST(StandardDescriptors, ThatAreClosedAreOpenedOnTheDeviceThatTakesAll) {
  // Goal: no file or socket that is opened later is standard output. Method: a copy of this process
  // closes them; which device each is then, and which descriptor comes next.
  const int status = status_of_copy({}, [] {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(descriptor);
    open_standard_descriptors();
    struct stat null {};
    if (stat("/dev/null", &null) != 0) return 90;
    int right = 0;
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      struct stat status {};
      if (fstat(descriptor, &status) == 0 && status.st_rdev == null.st_rdev) ++right;
    }
    return dup(STDIN_FILENO) > STDERR_FILENO ? right : 91;
  });
  EXPECT_EQ(status, 3);
  // An open one stays what it is.
  const TemporaryFolder folder;
  const std::string file = folder.file("out");
  const int kept = status_of_copy({}, [&] {
    dup2(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDOUT_FILENO);
    close(STDIN_FILENO);
    open_standard_descriptors();
    return write(STDOUT_FILENO, "kept", 4) == 4 ? 0 : 92;
  });
  EXPECT_EQ(kept, 0);
  EXPECT_EQ(read_whole_file(file), "kept");
}

TEST(StandardDescriptors, ThatAreClosedDoNotHinderTheTool) {
  // Goal: a tool that is to say nothing says nothing, and a trace holds only events. Method: the
  // toy with all three closed.
  const TemporaryFolder folder;
  const std::string trace = folder.file("trace");
  const ToolRun run =
      run_tool("run toy --seed 6 --trace " + trace, "sh -c 'exec \"$0\" \"$@\" <&- >&- 2>&-'");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(read_whole_file(trace), "start\nstraight\nend\n");
}

}  // namespace
}  // namespace rehearsal::command_line
