// This binary is the tests, and the tool whose workers they start.
#include "command_line/command_line.h"
#include "scenarios/storm/storm.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  using namespace rehearsal;
  return command_line::run_tests_or_tool(argc, argv, [](int count, char** words) {
    return rehearsal::main(count, words, {storm_scenario()});
  });
}
