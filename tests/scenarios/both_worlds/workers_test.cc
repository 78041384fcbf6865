#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

// `rehearsal worker`, a process for each, as a user starts them in several shells.
namespace rehearsal::command_line {
namespace {

std::string two_workers(const TemporaryFolder& folder) {
  return "worker quickstart --set steps=2 --world-size 2 --rendezvous file://" +
         folder.file("store");
}

struct Difference {
  std::string first;
  std::string second;
  std::string named;
};

TEST(Workers, AreRefusedIfAnyOfTheirFlagsThatMustAgreeDiffers) {
  // Goal: neither trains with half of the options. Method: each flag, differing at two processes;
  // both end and name it with both values.
  const std::vector<Difference> differences = {
      {"--set size=tiny", "--set size=full", "size is 'tiny' here, 'full' there"},
      {"--seed 1", "--seed 2", "seed is '1' here, '2' there"},
      {"--peer-timeout 40s", "--peer-timeout 60s", "peer_timeout is '40 s' here, '60 s' there"},
      {"--heartbeat 1s", "--heartbeat 2s", "heartbeat is '1 s' here, '2 s' there"}};
  for (const Difference& one : differences) {
    const TemporaryFolder folder;
    auto other = std::async(std::launch::async, [&] {
      return run_tool(two_workers(folder) + " --rank 1 " + one.second);
    });
    const ToolRun run = run_tool(two_workers(folder) + " --rank 0 " + one.first);
    const ToolRun other_run = other.get();
    EXPECT_NE(run.status, 0);
    EXPECT_NE(other_run.status, 0);
    EXPECT_NE(run.err.find(one.named), std::string::npos) << run.err << other_run.err;
    EXPECT_NE(other_run.err.find(one.named.substr(0, one.named.find(" is "))), std::string::npos)
        << other_run.err;
  }
}

TEST(Workers, AWorkerThatWaitsForAnotherSaysForWhichOne) {
  // Method: the second worker is started once the first one's log has said it.
  const TemporaryFolder folder;
  const std::string said = folder.file("said");
  const std::string binary = std::filesystem::read_symlink("/proc/self/exe");
  const std::string first = std::string(kToolVariable) + "=1 '" + binary + "' " +
                            two_workers(folder) + " --rank 0 --log info >'" + said + "' 2>&1";
  auto ended = std::async(std::launch::async, [&] { return std::system(first.c_str()); });
  while (read_whole_file(said).find("event=waits") == std::string::npos)
    if (ended.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready) break;
  const ToolRun second = run_tool(two_workers(folder) + " --rank 1");
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(ended.get(), 0);
  const std::string log = read_whole_file(said);
  const size_t word = log.find("event=waits");
  ASSERT_NE(word, std::string::npos) << log;
  EXPECT_NE(log.substr(word, log.find('\n', word) - word).find("rank 1"), std::string::npos) << log;
}

}  // namespace
}  // namespace rehearsal::command_line
