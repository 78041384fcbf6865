// The file of spans that `run --spans` writes.
#pragma once

#include <filesystem>
#include <string>

#include "observe/spans.h"

namespace rehearsal::command_line {

// Throws WrongUse if `file` cannot be written. An empty name asks for none.
void check_spans_file(const std::string& file);

// Throws WrongUse as above.
void write_spans_file(const std::string& file, const observe::SpanFile& spans);

// Puts the files that the workers have left in `folder` together. A worker that crashed left none.
void merge_spans_files(const std::filesystem::path& folder, const std::string& file);

}  // namespace rehearsal::command_line
