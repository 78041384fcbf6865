#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "core/base/result.h"

// Files that somebody else has named or made: the name may be that of a pipe that nobody writes
// into, or of a device that has no end.
namespace rehearsal {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, FileCloser>;

// Opens a regular file to be read, and waits for nobody. The error (bad_arguments) is the cause
// alone, without the name: there is none, it may not be read, it is something else.
[[nodiscard]] Result<OpenFile> open_regular(const std::string& path);

// All bytes of a regular file, in memory that grows with what is there. The error is one of the
// above, or that there are more than `bytes_max`, or that they cannot be read to the end.
[[nodiscard]] Result<std::string> read_regular(const std::string& path, uint64_t bytes_max);

}  // namespace rehearsal
