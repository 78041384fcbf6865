#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace rehearsal::real {

// Keeps the file of a rendezvous locked as long as it lives, and makes the file if it is not there.
// c10d locks it for each question, through a descriptor of its own: even of one process, whoever
// asks meanwhile waits.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : file_(open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    if (file_ < 0 || flock(file_, LOCK_EX) != 0)
      throw std::system_error(errno, std::generic_category(), path);
  }
  ~FileLock() { close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  const int file_;
};

}  // namespace rehearsal::real
