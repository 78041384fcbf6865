#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>

#include "core/base/result.h"

namespace rehearsal::real {

// The file in which workers meet, as c10d's FileStore writes it: entries of a key and a value, each
// behind its length (four bytes, the machine's order). At an entry that is cut short FileStore
// reads for ever, with the file locked; so whoever is about to ask it looks here before. Any
// thread.
class StoreFile {
 public:
  explicit StoreFile(std::string path) : path_(std::move(path)) {}

  // Whether it can be such a file: it is not there yet, but its folder is; or it is a file that
  // ends with the end of an entry. Waits for its lock without a limit, as FileStore does. Each
  // entry is read once, by the first call that sees it. The error (bad_arguments) names the file
  // and the cause.
  [[nodiscard]] Status check();

 private:
  [[nodiscard]] Status check_entries(int fd, off_t size);

  const std::string path_;
  std::mutex mutex_;
  off_t whole_ = 0;  // so many bytes are whole entries
};

}  // namespace rehearsal::real
