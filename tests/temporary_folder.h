// A place for the files of a test.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace rehearsal {

// A folder of a test's own, below the system's temporary folder: no other process and no other
// object has it. It and all in it are gone when this is. A child that was forked leaves it alone.
class TemporaryFolder {
 public:
  // Throws std::runtime_error, which names the path, if it cannot be made.
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rehearsal-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("the temporary folder " + name + " cannot be made");
    path_ = name;
  }
  ~TemporaryFolder() {
    if (kept_ || getpid() != maker_) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // The path of a file in it, which is not made.
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

  // It stays, for a person to look at.
  void keep() { kept_ = true; }

 private:
  const pid_t maker_ = getpid();
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace rehearsal
