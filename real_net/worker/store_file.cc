#include "real_net/worker/store_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>

#include "real_net/runtime/file_descriptor.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {
namespace {

constexpr off_t kLengthBytes = 4;

Error unusable(const std::string& path, const std::string& why) {
  return wrong_arguments("the file of the rendezvous, '" + path + "': " + why);
}

// After a call of the system has failed.
Error failed(const std::string& path) {
  const int error = errno;
  return is_shortage(error) ? shortage_error(error) : unusable(path, std::strerror(error));
}

// Of a file that is not there.
Status check_folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  struct stat state {};
  if (stat(folder.c_str(), &state) == 0) return Unit{};
  return unusable(path, "its folder: " + std::string(std::strerror(errno)) +
                            "; make it, or name another file (--rendezvous file:///PATH)");
}

std::optional<off_t> length_at(int fd, off_t at) {
  uint32_t length = 0;
  if (pread(fd, &length, kLengthBytes, at) != kLengthBytes) return std::nullopt;
  return length;
}

}  // namespace

Status StoreFile::check() {
  struct stat state {};
  if (stat(path_.c_str(), &state) != 0) {
    if (errno == ENOENT) return check_folder(path_);
    return failed(path_);
  }
  if (!S_ISREG(state.st_mode)) return unusable(path_, "it is a folder, a pipe or a device");
  const FileDescriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) {
    if (errno == ENOENT) return Unit{};  // The last worker of a group has removed it.
    return failed(path_);
  }
  while (flock(file.get(), LOCK_SH) != 0)
    if (errno != EINTR) return failed(path_);
  if (fstat(file.get(), &state) != 0) return failed(path_);
  return check_entries(file.get(), state.st_size);
}

// Keys are not empty.
Status StoreFile::check_entries(int fd, off_t size) {
  const std::lock_guard lock(mutex_);
  if (size < whole_) whole_ = 0;  // another file
  while (whole_ < size) {
    const std::optional<off_t> key = length_at(fd, whole_);
    const off_t behind_key = whole_ + kLengthBytes + key.value_or(0);
    const std::optional<off_t> value = key ? length_at(fd, behind_key) : std::nullopt;
    const off_t end = behind_key + kLengthBytes + value.value_or(0);
    if (!value || *key == 0 || end > size)
      return unusable(path_,
                      "it ends within an entry (a worker that was killed while it wrote, or " +
                          std::string("a full disk, leaves it so), or is no rendezvous; ") +
                          "remove it if it is one, or name another file");
    whole_ = end;
  }
  return Unit{};
}

}  // namespace rehearsal::real
