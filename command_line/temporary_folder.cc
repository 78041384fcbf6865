#include "command_line/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace rehearsal::command_line {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "rehearsal-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw std::runtime_error("the temporary folder " + name +
                             " cannot be made: " + std::strerror(errno) + "; TMPDIR says where");
  path_ = name;
  sweeper_.emplace(name);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rehearsal::command_line
