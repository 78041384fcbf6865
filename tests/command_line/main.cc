// This binary is the tests, and the tool that they start.
#include "command_line/command_line.h"
#include "tests/command_line/toy.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  namespace command_line = rehearsal::command_line;
  return command_line::run_tests_or_tool(argc, argv, [](int count, char** words) {
    return command_line::main(count, words, command_line::toy::scenarios(),
                              command_line::toy::backends());
  });
}
