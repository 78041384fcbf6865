#include "real_net/worker/checkpoint_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/regular_file.h"
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

// The name of a file is on disk only when its folder is.
Status flush_folder(const std::filesystem::path& folder) {
  const FileDescriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid() || fsync(opened.get()) != 0)
    return failure("cannot write", folder.string(), errno);
  return Unit{};
}

// ---- files that are being written ----

constexpr std::string_view kUnfinished = ".unfinished";

// Whether nobody else writes the file. Some file systems know no locks: there it is said of every
// file that somebody does, and none is removed.
bool lock(const FileDescriptor& file) { return flock(file.get(), LOCK_EX | LOCK_NB) == 0; }

struct Unfinished {
  FileDescriptor file;
  std::string path;
};

// A new one beside the file of this name. Another process may have come by the same number, on
// another machine, and may remove a file that is not locked yet: then the next name is tried.
Result<Unfinished> begin_file(const std::string& folder, const std::string& name) {
  static std::atomic<uint64_t> made = 0;
  while (true) {
    const std::string path = folder + "/." + name + "." + std::to_string(getpid()) + "." +
                             std::to_string(++made) + std::string(kUnfinished);
    FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.valid() && errno == EEXIST) continue;
    if (!file.valid()) return failure("cannot make", path, errno);
    const bool locked = lock(file) || errno != EWOULDBLOCK;
    struct stat state {};
    if (locked && fstat(file.get(), &state) == 0 && state.st_nlink > 0)
      return Unfinished{std::move(file), path};
  }
}

// Those of processes that have ended: no save would ever come to write them.
void remove_left(const std::string& folder) {
  std::error_code failed;
  std::filesystem::directory_iterator at(folder, failed);
  for (const std::filesystem::directory_iterator none; !failed && at != none;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with('.') || !name.ends_with(kUnfinished)) continue;
    const FileDescriptor file(
        open(at->path().c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    if (file.valid() && lock(file)) unlink(at->path().c_str());
  }
}

Status finish_file(const Unfinished& unfinished, const std::string& bytes,
                   const std::string& path) {
  if (Status written = write_all(unfinished.file.get(), bytes, path); !written.ok()) return written;
  if (fsync(unfinished.file.get()) != 0) return failure("cannot write", path, errno);
  if (rename(unfinished.path.c_str(), path.c_str()) != 0)
    return failure("cannot write", path, errno);
  return Unit{};
}

}  // namespace

CheckpointFiles::CheckpointFiles(const std::string& folder, const std::string& worker)
    : folder_(folder.empty() ? "" : folder + "/" + worker) {}

// A folder that was made is on disk only when the one that it is in is. That of the worker may have
// been made by a process that ended before it could see to that.
Status CheckpointFiles::prepare() {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::absolute(folder_, failed);
  std::vector<std::filesystem::path> parents{folder.parent_path()};
  std::error_code ignored;
  while (!std::filesystem::exists(parents.back(), ignored) && parents.back().has_relative_path())
    parents.push_back(parents.back().parent_path());
  const bool made = !failed && std::filesystem::create_directories(folder, failed);
  if (failed) return failure("cannot make the folder", folder_, failed.value());
  if (prepared_ && !made) return Unit{};
  for (const std::filesystem::path& parent : parents)
    if (Status flushed = flush_folder(parent); !flushed.ok()) return flushed;
  remove_left(folder_);
  prepared_ = true;
  return Unit{};
}

Status CheckpointFiles::save(const std::string& name, const std::string& bytes) {
  if (folder_.empty()) return no_folder();
  const std::lock_guard lock(saving_);
  if (Status prepared = prepare(); !prepared.ok()) return prepared;
  const Result<Unfinished> unfinished = begin_file(folder_, name);
  if (!unfinished.ok()) return unfinished.error();
  if (Status finished = finish_file(unfinished.value(), bytes, folder_ + "/" + name + ".pt");
      !finished.ok()) {
    unlink(unfinished.value().path.c_str());  // Of a full disk it would keep the room.
    return finished;
  }
  return flush_folder(folder_);
}

Result<std::optional<std::string>> CheckpointFiles::load(const std::string& name) {
  if (folder_.empty()) return no_folder();
  const std::string path = folder_ + "/" + name + ".pt";
  struct stat state {};
  if (stat(path.c_str(), &state) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return std::optional<std::string>{};
  Result<std::string> read = read_regular(path, std::numeric_limits<uint64_t>::max());
  if (read.ok()) return std::optional<std::string>(std::move(read).value());
  return Error{.kind = ErrorKind::storage,
               .text = "cannot read " + path + ": " + read.error().text};
}

}  // namespace rehearsal::real
