// A folder for the files that a command and its child processes exchange.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "command_line/sweeper.h"

namespace rehearsal::command_line {

// The folder and all that is in it are gone when this is, or when this process has ended early.
class TemporaryFolder {
 public:
  // Throws std::runtime_error, with path and cause, if it cannot be made.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
  std::optional<Sweeper> sweeper_;
};

}  // namespace rehearsal::command_line
