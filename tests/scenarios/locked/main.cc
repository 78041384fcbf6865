// This binary is the tests, and the tool with the programs that they start.
#include "command_line/command_line.h"
#include "tests/scenarios/locked/programs.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  return rehearsal::command_line::run_tests_or_tool(argc, argv, [](int count, char** words) {
    return rehearsal::main(count, words, rehearsal::locked::scenarios());
  });
}
