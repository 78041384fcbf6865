#include "real_net/worker/checkpoint_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "real_net/runtime/file_descriptor.h"

namespace rehearsal::real {
namespace {

Error failure(const std::string& what, const std::string& path, int number) {
  return {.kind = ErrorKind::storage, .text = what + " " + path + ": " + std::strerror(number)};
}

Error no_folder() {
  return {.kind = ErrorKind::storage,
          .text = "this worker has no folder for checkpoints: start it with --checkpoints FOLDER"};
}

Status write_all(int file, const std::string& bytes, const std::string& path) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write(file, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure("cannot write", path, errno);
    written += static_cast<size_t>(count);
  }
  return Unit{};
}

Status write_to_disk(const std::string& path, const std::string& bytes) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return failure("cannot write", path, errno);
  if (Status written = write_all(file.get(), bytes, path); !written.ok()) return written;
  if (fsync(file.get()) != 0) return failure("cannot write", path, errno);
  return Unit{};
}

// The name of a file is on disk only when its folder is.
Status flush_folder(const std::string& folder) {
  const FileDescriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid() || fsync(opened.get()) != 0) return failure("cannot write", folder, errno);
  return Unit{};
}

}  // namespace

CheckpointFiles::CheckpointFiles(const std::string& folder, const std::string& worker)
    : folder_(folder.empty() ? "" : folder + "/" + worker) {}

Status CheckpointFiles::save(const std::string& name, const std::string& bytes) {
  if (folder_.empty()) return no_folder();
  const std::lock_guard lock(saving_);
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  if (failed) return failure("cannot make the folder", folder_, failed.value());
  const std::string path = folder_ + "/" + name + ".pt";
  const std::string unfinished = folder_ + "/." + name + ".unfinished";
  if (Status written = write_to_disk(unfinished, bytes); !written.ok()) {
    unlink(unfinished.c_str());  // Of a full disk it would keep the room.
    return written;
  }
  if (rename(unfinished.c_str(), path.c_str()) != 0) return failure("cannot write", path, errno);
  return flush_folder(folder_);
}

Result<std::optional<std::string>> CheckpointFiles::load(const std::string& name) {
  if (folder_.empty()) return no_folder();
  const std::string path = folder_ + "/" + name + ".pt";
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>{};
  std::string bytes;
  std::array<char, 1 << 16> piece;
  while (file.valid()) {
    const ssize_t count = read(file.get(), piece.data(), piece.size());
    if (count == 0) return std::optional<std::string>(std::move(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    bytes.append(piece.data(), static_cast<size_t>(count));
  }
  return failure("cannot read", path, errno);
}

}  // namespace rehearsal::real
