#include "command_line/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "command_line/commands.h"

namespace rehearsal::command_line {

void open_standard_descriptors() {
  // In this order the lowest free one, which open() gives, is the one that is closed.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0) static_cast<void>(open("/dev/null", O_RDWR));
}

StandardOutput::StandardOutput() : own_(std::cout.rdbuf()), noting_(*own_) {
  std::cout.rdbuf(&noting_);
}

StandardOutput::~StandardOutput() { std::cout.rdbuf(own_); }

int StandardOutput::end(const std::string& program, int status) {
  std::cout.flush();
  const int error = noting_.error();
  if (error == 0) return status;
  if (error != EPIPE)
    std::cerr << program << ": standard output cannot be written: " << std::strerror(error)
              << std::endl;
  return status == kHolds ? kFailed : status;
}

}  // namespace rehearsal::command_line
