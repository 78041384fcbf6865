// This binary is the tests, and the tool with the scenario that they start.
#include "command_line/command_line.h"
#include "scenarios/shared_state/shared_state.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  return rehearsal::command_line::run_tests_or_tool(argc, argv, [](int count, char** words) {
    return rehearsal::main(count, words, {rehearsal::shared_state::scenario()});
  });
}
