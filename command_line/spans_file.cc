#include "command_line/spans_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "command_line/wrong_use.h"

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

void check_spans_file(const std::string& file) {
  if (file.empty()) return;
  if (!std::ofstream(file).flush())
    throw WrongUse("--spans " + file + ": cannot be written; name another file");
}

void write_spans_file(const std::string& file, const observe::SpanFile& spans,
                      RunOutcome& outcome) {
  errno = 0;
  std::ofstream written(file);
  written << observe::perfetto_text(spans);
  written.close();
  if (!written) fail(outcome, file, std::string("cannot be written: ") + std::strerror(errno));
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
