#include "command_line/failure_folder.h"

#include <filesystem>
#include <system_error>

#include "command_line/printed.h"
#include "command_line/run_file.h"
#include "sim/explain/text_diagram.h"

namespace rehearsal::command_line {
namespace {

constexpr const char* kPage = "failure.html";
constexpr const char* kTrace = "failure.trace.json";
constexpr const char* kText = "failure.txt";
constexpr const char* kSpans = "failure.spans.json";

}  // namespace

std::string file_in(const std::string& folder, const char* name) {
  return folder.empty() ? "" : (std::filesystem::path(folder) / name).string();
}

void remove_pictures(const std::string& folder) {
  std::error_code none;  // There are none.
  for (const char* name : {kPage, kTrace, kText, kSpans})
    if (!folder.empty()) std::filesystem::remove(file_in(folder, name), none);
}

void leave_run(OutputFiles& files, const std::string& folder, const Json& report,
               const RunSettings& settings, const sim::RunFailure& failure) {
  if (folder.empty()) return;
  files.write(file_in(folder, "failure.json"), printed(report) + "\n");
  files.write(file_in(folder, "failure.run"), run_file_text(settings, failure));
}

void leave_pictures(OutputFiles& files, const std::string& folder,
                    const std::optional<Explanation>& explanation) {
  if (folder.empty() || !explanation) return;
  const sim::Subject& subject = explanation->subject;
  write_pictures(files, *explanation, file_in(folder, kPage), file_in(folder, kTrace));
  files.write(file_in(folder, kText), sim::text_diagram(explanation->chronicle, subject) +
                                          subject.failure + "\n" + subject.command + "\n");
  if (!explanation->spans.empty()) files.write(file_in(folder, kSpans), explanation->spans);
}

}  // namespace rehearsal::command_line
