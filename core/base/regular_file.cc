#include "core/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace rehearsal {
namespace {

constexpr size_t kFirstPieceBytes = size_t{1} << 16;
constexpr size_t kPieceBytesMax = size_t{1} << 24;

Error unreadable(std::string cause) {
  return {.kind = ErrorKind::bad_arguments, .text = std::move(cause)};
}

Error unreadable(int error) { return unreadable(std::generic_category().message(error)); }

Error too_large(uint64_t bytes_max) {
  return unreadable("it has more than " + std::to_string(bytes_max) + " bytes");
}

}  // namespace

Result<OpenFile> open_regular(const std::string& path) {
  // Without waiting: a pipe without a writer would keep us here for ever.
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) return unreadable(errno);
  OpenFile file(fdopen(descriptor, "rb"));
  if (file == nullptr) return unreadable(errno);
  struct stat state {};
  if (fstat(descriptor, &state) != 0) return unreadable(errno);
  if (S_ISDIR(state.st_mode)) return unreadable("it is a folder");
  if (!S_ISREG(state.st_mode)) return unreadable("it is no file: a pipe, a device or a socket");
  return file;
}

Result<std::string> read_regular(const std::string& path, uint64_t bytes_max) {
  Result<OpenFile> opened = open_regular(path);
  if (!opened.ok()) return std::move(opened.error());
  std::FILE* const file = opened.value().get();
  struct stat state {};
  if (fstat(fileno(file), &state) != 0) return unreadable(errno);
  if (static_cast<uint64_t>(state.st_size) > bytes_max) return too_large(bytes_max);
  std::string bytes;
  size_t read = 0;
  while (std::feof(file) == 0) {
    bytes.resize(read + std::clamp(read, kFirstPieceBytes, kPieceBytesMax));
    read += std::fread(bytes.data() + read, 1, bytes.size() - read, file);
    if (std::ferror(file) != 0) return unreadable(errno);
    if (read > bytes_max) return too_large(bytes_max);
  }
  bytes.resize(read);
  return bytes;
}

}  // namespace rehearsal
