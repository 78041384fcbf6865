#include "command_line/failure_folder.h"

#include <filesystem>
#include <fstream>

#include "command_line/printed.h"
#include "command_line/run_file.h"
#include "command_line/wrong_use.h"
#include "sim/explain/text_diagram.h"

namespace rehearsal::command_line {
namespace {

void write(const std::string& name, const std::string& text) {
  std::ofstream file(name);
  file << text;
  if (!file.flush()) throw WrongUse(name + ": cannot be written; name another directory");
}

}  // namespace

std::string file_in(const std::string& folder, const char* name) {
  return folder.empty() ? "" : (std::filesystem::path(folder) / name).string();
}

void leave_run(const std::string& folder, const Json& report, const RunSettings& settings,
               const sim::RunFailure& failure) {
  if (folder.empty()) return;
  write(file_in(folder, "failure.json"), printed(report) + "\n");
  write_run_file(file_in(folder, "failure.run"), settings, failure);
}

void leave_pictures(const std::string& folder, const std::optional<Explanation>& explanation) {
  if (folder.empty() || !explanation) return;
  const sim::Subject& subject = explanation->subject;
  write_pictures(*explanation, file_in(folder, "failure.html"),
                 file_in(folder, "failure.trace.json"));
  write(file_in(folder, "failure.txt"), sim::text_diagram(explanation->chronicle, subject) +
                                            subject.failure + "\n" + subject.command + "\n");
  if (!explanation->spans.empty()) write(file_in(folder, "failure.spans.json"), explanation->spans);
}

}  // namespace rehearsal::command_line
