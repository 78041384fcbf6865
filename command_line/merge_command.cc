// `merge`: what the shards of one hunt found, as if it had been one.
#include "command_line/commands.h"
#include "command_line/hunt_result.h"
#include "command_line/junit.h"

namespace rehearsal::command_line {

int merge(const Tool& tool, const MergeCommand& command) {
  check_junit_file(command.junit_file);
  const HuntResult result = merge_results(command.files);
  write_junit(command.junit_file, "hunt", junit_cases(result));
  return print_result(tool, result);
}

}  // namespace rehearsal::command_line
