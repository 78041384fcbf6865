#include "command_line/output_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "command_line/wrong_use.h"

namespace rehearsal::command_line {

void make_folder(const std::string& flag, const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // Permissions do not tell: some folders take no file whoever asks.
  std::string file = folder + "/.writable-XXXXXX";
  const int opened = mkstemp(file.data());
  if (opened < 0) {
    const int cause = error ? error.value() : errno;
    throw WrongUse(flag + " " + folder + ": cannot be written: " + std::strerror(cause) +
                   "; name another directory");
  }
  close(opened);
  unlink(file.c_str());
}

}  // namespace rehearsal::command_line
