// Reads a file at once.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rehearsal {

// Empty if it cannot be read.
inline std::string read_whole_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace rehearsal
