#include "command_line/output_files.h"

#include <iostream>

#include "command_line/program_name.h"
#include "command_line/wrong_use.h"
#include "core/base/printable.h"
#include "record/whole_file.h"

namespace rehearsal::command_line {

void check_output_file(const std::string& flag, const std::string& file) {
  if (file.empty()) return;
  const Status status = record::check_whole_file(file);
  if (!status.ok()) throw WrongUse(flag + " " + status.error().text + "; name another file");
}

void OutputFiles::write(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  const Status written = record::write_whole_file(file, text);
  if (!written.ok()) note(written.error().text);
}

void OutputFiles::note(const std::string& error) {
  if (!error.empty()) errors_.push_back(error);
}

int OutputFiles::end(const Tool& tool, const std::string& command, int status) const {
  for (const std::string& error : errors_)
    std::cerr << program_name(tool.program) << " " << command << ": " << printable(error)
              << "; make room there, or name another place" << std::endl;
  return status == kHolds && !errors_.empty() ? kFailed : status;
}

}  // namespace rehearsal::command_line
