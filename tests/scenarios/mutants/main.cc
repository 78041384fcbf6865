// This binary is the tests, and the tool with the scenarios that they start.
#include <ATen/Parallel.h>

#include "command_line/command_line.h"
#include "tests/scenarios/mutants/hunted_scenarios.h"
#include "tests/scenarios/tool_run.h"

int main(int argc, char** argv) {
  using namespace rehearsal;
  at::set_num_threads(1);
  return command_line::run_tests_or_tool(argc, argv, [](int count, char** words) {
    return rehearsal::main(count, words, hunted_scenarios());
  });
}
