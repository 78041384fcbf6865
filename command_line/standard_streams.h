// Standard input, output and error of this process.
#pragma once

#include <string>

#include "command_line/noting_buffer.h"

namespace rehearsal::command_line {

// Opens /dev/null as each of the descriptors 0 to 2 that is closed: what is opened next would else
// be written to as standard output or standard error.
void open_standard_descriptors();

// Watches std::cout for as long as it lives.
class StandardOutput {
 public:
  StandardOutput();
  ~StandardOutput();
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  // Flushes it at the end of `program`. Returns `status`; kFailed in its place if that is kHolds
  // and something could not be written, which is told on standard error. Where the reader of a pipe
  // is gone nothing is told.
  [[nodiscard]] int end(const std::string& program, int status);

 private:
  std::streambuf* const own_;
  NotingBuffer noting_;
};

}  // namespace rehearsal::command_line
