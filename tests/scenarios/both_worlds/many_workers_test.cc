// Goal: many processes are one cluster like any other. Method: all join, call, and shut down
// together.
#include <gtest/gtest.h>

#include "tests/scenarios/tool_run.h"

namespace rehearsal::command_line {
namespace {

TEST(ManyWorkers, ThirtyTwoProcessesJoinCallEachOtherAndShutDown) {
  const ToolRun run = run_tool("run storm --net tcp --set workers=32 --set operations=1 --json");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_GT(run.json()["calls"], 32);
}

}  // namespace
}  // namespace rehearsal::command_line
