#include "command_line/spans_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "command_line/wrong_use.h"

namespace rehearsal::command_line {
namespace {

void check(std::ofstream& written, const std::string& file) {
  if (!written.flush())
    throw WrongUse("--spans " + file + ": cannot be written; name another file");
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

void check_spans_file(const std::string& file) {
  if (file.empty()) return;
  std::ofstream written(file);
  check(written, file);
}

void write_spans_file(const std::string& file, const observe::SpanFile& spans) {
  std::ofstream written(file);
  written << observe::perfetto_text(spans);
  check(written, file);
}

void merge_spans_files(const std::filesystem::path& folder, const std::string& file) {
  std::vector<std::filesystem::path> paths;
  std::error_code none;  // No worker has left any.
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<observe::SpanFile> files;
  for (const std::filesystem::path& path : paths)
    files.push_back(observe::read_spans(text_of(path)).or_throw());
  write_spans_file(file, observe::merge(files).or_throw());
}

}  // namespace rehearsal::command_line
