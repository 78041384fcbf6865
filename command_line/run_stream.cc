#include "command_line/run_stream.h"

#include <cerrno>
#include <cstring>

#include "command_line/wrong_use.h"

namespace rehearsal::command_line {

RunStream::RunStream(const std::string& file) : file_(file) {
  errno = 0;
  if (!file_.empty() && buffer_.open(file_, std::ios::out | std::ios::trunc) == nullptr)
    open_error_ = errno;
}

void RunStream::require(const std::string& flag) const {
  if (open_error_ != 0)
    throw WrongUse(flag + " " + file_ + ": cannot be written: " + std::strerror(open_error_) +
                   "; name another file");
}

std::string RunStream::close() {
  if (file_.empty()) return "";
  stream_.flush();
  errno = 0;
  const bool closed = buffer_.close() != nullptr;
  const int close_error = closed ? 0 : errno;
  int error = open_error_ != 0 ? open_error_ : noting_.error();
  if (error == 0) error = close_error;
  return error == 0 ? "" : file_ + ": cannot be written: " + std::strerror(error);
}

RunFiles::RunFiles(const RunSettings& settings)
    : trace_(settings.trace_file),
      history_(settings.history_file),
      choices_(settings.choices_file),
      writer_(history_.any()) {
  trace_.require("--trace");
}

void RunFiles::close(RunOutcome& outcome) {
  for (RunStream* stream : {&trace_, &history_, &choices_}) {
    const std::string error = stream->close();
    if (outcome.unwritten.empty()) outcome.unwritten = error;
  }
}

}  // namespace rehearsal::command_line
