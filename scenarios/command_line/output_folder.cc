#include "scenarios/command_line/output_folder.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "scenarios/wrong_use.h"

namespace rehearsal::command_line {

void make_folder(const std::string& flag, const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder, error) || access(folder.c_str(), W_OK) != 0)
    throw WrongUse(flag + " " + folder + ": cannot be written; name another directory");
}

}  // namespace rehearsal::command_line
