#include "command_line/spans_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "record/whole_file.h"

namespace rehearsal::command_line {
namespace {

void fail(RunOutcome& outcome, const std::string& file, const std::string& why) {
  std::error_code none;
  if (std::filesystem::is_regular_file(file, none)) std::filesystem::remove(file, none);
  if (!outcome.ok) return;
  outcome.ok = false;
  outcome.failure = sim::RunFailure{"spans", file, why};
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

void write_spans_file(const std::string& file, const observe::SpanFile& spans,
                      RunOutcome& outcome) {
  const Status written = record::write_whole_file(file, observe::perfetto_text(spans));
  const size_t name = std::string(file + ": ").size();  // which the failure has apart
  if (!written.ok()) fail(outcome, file, written.error().text.substr(name));
}

void merge_spans_files(const std::filesystem::path& folder, const std::string& file,
                       RunOutcome& outcome) {
  std::vector<std::filesystem::path> paths;
  std::error_code none;  // No worker has left any.
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<observe::SpanFile> files;
  for (const std::filesystem::path& path : paths) {
    Result<observe::SpanFile> spans = observe::read_spans(text_of(path));
    if (!spans.ok())
      return fail(outcome, file, path.filename().string() + ": " + spans.error().text);
    files.push_back(std::move(spans).value());
  }
  const Result<observe::SpanFile> all = observe::merge(files);
  if (!all.ok()) return fail(outcome, file, Result<observe::SpanFile>(all).error().text);
  write_spans_file(file, all.value(), outcome);
}

}  // namespace rehearsal::command_line
