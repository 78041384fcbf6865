// `merge`: what the shards of one hunt found, as if it had been one.
#include "command_line/commands.h"
#include "command_line/hunt_result.h"
#include "command_line/junit.h"
#include "command_line/output_files.h"

namespace rehearsal::command_line {

int merge(const Tool& tool, const MergeCommand& command) {
  check_output_file("--junit", command.junit_file);
  const HuntResult result = merge_results(command.files);
  OutputFiles files;
  files.write(command.junit_file, junit_text("hunt", junit_cases(result)));
  return files.end(tool, "merge", print_result(tool, result));
}

}  // namespace rehearsal::command_line
