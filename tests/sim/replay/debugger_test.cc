// gdb with rehearsal-gdb.py on a simulated run and on a replay: it stops at an event, and shows the
// stacks that are parked there.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "tests/sim/replay/recorded_group.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::sim {
namespace {

constexpr const char* kRecordVariable = "REHEARSAL_TEST_RECORD";

int64_t serve_slowly(CallContext& context, int64_t number) {
  context.sleep(std::chrono::milliseconds(20));
  return number + 1;
}

void ask_slowly(Worker& worker) {
  if (worker.rpc_sync("server", &serve_slowly, int64_t{1}) != 2) throw std::logic_error("wrong");
}

Program slow_program() {
  FunctionRegistry registry;
  registry.function("serve_slowly", &serve_slowly);
  Program program(std::move(registry));
  program.worker("server", [](Worker&) {}).worker("client", ask_slowly);
  return program;
}

constexpr Seed kSeed{1};
const ClusterOptions kOptions{.faults = FaultLevel::none};

// The programs that are debugged, each in a process of its own.
TEST(DISABLED_Debugged, SimulatedRun) {
  const Program program = slow_program();
  Cluster cluster(kSeed, program, kOptions);
  cluster.run();
}
TEST(DISABLED_Debugged, Replay) {
  const auto record = record::read_record(std::getenv(kRecordVariable)).or_throw();
  EXPECT_FALSE(replay(*record, slow_program()).divergence.has_value());
}

std::string output_of(const std::string& command) {
  const TemporaryFolder folder;
  const std::string file = folder.file("output");
  static_cast<void>(std::system(("( " + command + " ) >'" + file + "' 2>&1 </dev/null").c_str()));
  return read_whole_file(file);
}

std::string gdb(const std::string& test, const std::vector<std::string>& commands) {
  // This binary runs the one test there, whatever part of its tests this process is to run.
  std::string line =
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX ASAN_OPTIONS=detect_leaks=0 "
      "gdb -nx -batch -x sim/rehearsal-gdb.py";
  for (const std::string& command : commands) line += " -ex '" + command + "'";
  line += " --args '" + std::filesystem::read_symlink("/proc/self/exe").string() +
          "' --gtest_also_run_disabled_tests --gtest_filter=DISABLED_Debugged." + test;
  return output_of(line);
}

class Debugger : public testing::Test {
 protected:
  void SetUp() override {
    if (output_of("gdb -nx -batch -ex run --args /bin/true").find("exited normally") ==
        std::string::npos)
      GTEST_SKIP() << "gdb is missing, or may not start a process here";
    // Some versions cannot on processors that have more registers than they know of.
    const std::string writing = output_of(
        "gdb -nx -batch -ex starti -ex \"set var \\$xmm0.v4_int32[0] = 1\" -ex kill "
        "--args /bin/true");
    if (writing.find("Couldn't write") != std::string::npos)
      GTEST_SKIP() << "gdb cannot write registers here, and so call nothing: " << writing;
  }

  // These words follow each other in the text.
  static void expect_in_order(const std::string& text, const std::vector<std::string>& words) {
    size_t at = 0;
    for (const std::string& word : words) {
      const size_t found = text.find(word, at);
      ASSERT_NE(found, std::string::npos) << "'" << word << "' is missing behind " << at << " of:\n"
                                          << text;
      at = found + word.size();
    }
  }
};

TEST_F(Debugger, StopsASimulatedRunAtAnEventAndShowsItsParkedStacks) {
  // Goal: the number of an event line is where it stops; each stack is shown as it stands; the run
  // goes on as if nobody had looked; a number that is too large is no endless wait. Method: the
  // event at which a function that sleeps goes on, while its caller waits for it; the millionth
  // event.
  const Program program = slow_program();
  std::ostringstream lines;
  ClusterOptions options = kOptions;
  options.event_lines = &lines;
  Cluster cluster(kSeed, program, options);
  cluster.run();
  std::istringstream read(lines.str());
  std::string line;
  while (std::getline(read, line))
    if (line.find("execution_resumed") != std::string::npos &&
        line.find("serve_slowly") != std::string::npos)
      break;
  const std::string number = line.substr(0, line.find(' '));
  ASSERT_NE(number, "");
  const std::string text =
      gdb("SimulatedRun", {"rehearsal workers", "rehearsal stop-at " + number, "rehearsal stacks",
                           "rehearsal stop-at 3", "rehearsal stacks client -full", "continue",
                           "rehearsal stop-at 1000000", "rehearsal stop-at x"});
  expect_in_order(text, {"the program is not being run",
                         "seed 1, event " + number + ", 0.",
                         "  server: its strand runs; ",
                         "serve_slowly waits",
                         "  client: main waits for serve_slowly at server",
                         "\nserver: serve_slowly waits",
                         "serve_slowly",
                         "debugger_test.cc:",
                         "\nclient: main waits for serve_slowly at server",
                         "ask_slowly",
                         "debugger_test.cc:",
                         "event 3 has passed, the run is at event " + number,
                         "\nclient: main waits",
                         "suspend",
                         "ask_slowly",
                         "make_fcontext",
                         "exited normally",
                         "exited normally",
                         "the run has ended before event 1000000",
                         "name the number of an event: rehearsal stop-at 153"});
}

TEST_F(Debugger, ShowsTheStacksOfAReplay) {
  // Goal: the same for one worker from production. Method: the server of the same program, recorded
  // over TCP.
  const Program program = slow_program();
  RecordedGroup group(program, {});
  for (const Status& end : group.run()) ASSERT_TRUE(end.ok()) << to_string(end.error());
  const std::vector<std::string>& events = group.events(0);
  const auto resumed = std::find_if(events.begin(), events.end(), [](const std::string& event) {
    return event.starts_with("execution_resumed ") && event.ends_with(" serve_slowly");
  });
  ASSERT_NE(resumed, events.end());
  const std::string number = std::to_string(resumed - events.begin() + 1);
  ASSERT_EQ(setenv(kRecordVariable, group.file(0).c_str(), 1), 0);
  const std::string text =
      gdb("Replay", {"rehearsal stop-at " + number, "rehearsal stacks", "continue"});
  expect_in_order(text, {"event " + number + ", before entry ", " of the record\n  server:",
                         "serve_slowly", "\nserver: serve_slowly is about to go on", "serve_slowly",
                         "debugger_test.cc:", "exited normally"});
}

}  // namespace
}  // namespace rehearsal::sim
