// `shrink`: a run that fails, made small; see shrinker.h.
#include <iomanip>
#include <iostream>

#include "command_line/explanation.h"
#include "command_line/output_files.h"
#include "command_line/printed.h"
#include "command_line/program_name.h"
#include "command_line/shrinker.h"
#include "sim/hunt/choice_lists.h"

namespace rehearsal::command_line {
namespace {

int report_holds(const Tool& tool) {
  if (tool.json) {
    std::cout << printed(Json{{"command", "shrink"}, {"ok", true}}) << std::endl;
  } else {
    std::cout << "shrink: the run holds; there is nothing to shrink" << std::endl;
  }
  return kHolds;
}

int report_unfinished(const Tool& tool, const RunSettings& settings) {
  const sim::RunFailure failure{kUnfinished, "the run",
                                "it had not ended when the time was up: --for says how long"};
  if (tool.json) {
    const Json json{{"command", "shrink"},
                    {"ok", false},
                    {"scenario", settings.scenario->name},
                    {"failure", to_json(failure, replay_command(tool.program, settings))}};
    std::cout << printed(json) << std::endl;
  }
  print_failure(tool, settings, failure);
  return kFailed;
}

// Exit status 3, as of `verify`, which says more.
int report_differs(const Tool& tool, const Shrunk& shrunk) {
  const sim::RunFailure failure{
      "determinism", "",
      "two runs of it in two processes were not the same; '" + program_name(tool.program) +
          " verify " + shrunk.settings.scenario->name + " --first-seed " +
          std::to_string(shrunk.settings.seed.value) + " --seeds 1' says more"};
  if (tool.json) {
    const Json json{{"command", "shrink"},
                    {"ok", false},
                    {"scenario", shrunk.settings.scenario->name},
                    {"failure", to_json(failure, replay_command(tool.program, shrunk.settings))}};
    std::cout << printed(json) << std::endl;
  }
  print_failure(tool, shrunk.settings, failure);
  return kNondeterminism;
}

Json shrunk_json(const Tool& tool, const Shrunk& shrunk) {
  return {{"command", "shrink"},
          {"ok", false},
          {"scenario", shrunk.settings.scenario->name},
          {"runs", shrunk.runs},
          {"decisions", sim::texts_of(shrunk.settings.decisions)},
          {"failure", to_json(shrunk.failure, replay_command(tool.program, shrunk.settings))},
          {"other_failures", others_json(tool, shrunk)},
          {"wall_seconds", shrunk.seconds}};
}

}  // namespace

int shrink(const Tool& tool, const ShrinkCommand& command) {
  check_output_file("--out", command.file);
  const Shrunk shrunk = shrink_run(tool, command.settings, {command.budget, command.file});
  if (shrunk.end == Shrunk::End::holds) return report_holds(tool);
  if (shrunk.end == Shrunk::End::differs) return report_differs(tool, shrunk);
  if (shrunk.end == Shrunk::End::unfinished) return report_unfinished(tool, shrunk.settings);
  if (tool.json) {
    std::cout << printed(shrunk_json(tool, shrunk)) << std::endl;
  } else {
    std::cout << others_text(tool, shrunk) << "shrink: " << shrunk.settings.decisions.size()
              << " decisions are left, after " << shrunk.runs << " runs and " << std::fixed
              << std::setprecision(1) << shrunk.seconds << " s" << std::endl;
  }
  static_cast<void>(explain_failure(tool, shrunk.settings, shrunk.failure, /*with_spans=*/false));
  if (fits_a_command(replay_command(tool.program, shrunk.settings))) {
    print_failure(tool, shrunk.settings, shrunk.failure);
  } else {
    std::cerr << "shrink: too much is left for a command line; told is the run as it was given"
              << std::endl;
    print_failure(tool, command.settings, shrunk.failure);
  }
  OutputFiles files;
  files.note(shrunk.unwritten);
  return files.end(tool, "shrink", kFailed);
}

}  // namespace rehearsal::command_line
