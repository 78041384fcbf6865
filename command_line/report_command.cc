// `report`: a run that was written down, told as text, as a page and as a trace.
#include <filesystem>
#include <iostream>

#include "command_line/commands.h"
#include "command_line/explanation.h"
#include "command_line/output_files.h"
#include "command_line/printed.h"
#include "command_line/program_name.h"
#include "command_line/wrong_use.h"
#include "sim/explain/text_diagram.h"

namespace rehearsal::command_line {
namespace {

// An output that cannot be written is wrong use before the run, not after it.
void check_output(const std::string& flag, const std::string& output, const std::string& input) {
  if (output.empty()) return;
  std::error_code error;
  if (std::filesystem::equivalent(output, input, error))
    throw WrongUse(flag + " " + output + ": this is the run itself; name another file");
  check_output_file(flag, output);
}

Json report_of(const Tool& tool, const ReportCommand& command, const Explanation& explanation) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json json{{"command", "report"},
            {"scenario", command.settings.scenario->name},
            {"seed", command.settings.seed.value},
            {"ok", !explanation.failure.has_value()},
            {"events", explanation.chronicle.moments.size()},
            {"messages", explanation.chronicle.messages.size()},
            {"html", or_null(command.html_file)},
            {"perfetto", or_null(command.perfetto_file)},
            {"critical", nullptr}};
  if (explanation.subject.critical)
    json["critical"] = sim::lines_of(explanation.chronicle, *explanation.subject.critical);
  if (explanation.failure)
    json["failure"] = to_json(*explanation.failure, replay_command(tool.program, command.settings));
  return json;
}

}  // namespace

int report(const Tool& tool, const ReportCommand& command) {
  check_output("--html", command.html_file, command.file);
  check_output("--perfetto", command.perfetto_file, command.file);
  const std::optional<Explanation> explanation =
      explain_run(tool, command.settings, /*hangs=*/false, /*with_spans=*/false);
  if (!explanation) {
    std::cerr << program_name(tool.program) << " report: the run left nothing to tell" << std::endl;
    return kFailed;
  }
  OutputFiles files;
  write_pictures(files, *explanation, command.html_file, command.perfetto_file);
  if (tool.json) {
    std::cout << printed(report_of(tool, command, *explanation)) << std::endl;
    return files.end(tool, "report", kHolds);
  }
  std::cout << sim::text_diagram(explanation->chronicle, explanation->subject);
  if (explanation->failure) std::cout << to_text(*explanation->failure) << "\n";
  const int status = files.end(tool, "report", kHolds);
  if (status != kHolds) return status;
  for (const std::string& file : {command.html_file, command.perfetto_file})
    if (!file.empty()) std::cout << "written: " << file << "\n";
  std::cout << std::flush;
  return kHolds;
}

}  // namespace rehearsal::command_line
