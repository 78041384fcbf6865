#include "record/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

namespace rehearsal::record {
namespace {

// Each of these returns the errno of what failed, or 0.

int write_text(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

// Some disks tell only now that they are full. The descriptor is closed in any case.
int write_and_close(int file, std::string_view text) {
  const int error = write_text(file, text);
  const bool closed = close(file) == 0 || errno == EINTR;
  return error == 0 && !closed ? errno : error;
}

int write_in_place(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  return file < 0 ? errno : write_and_close(file, text);
}

// The file that a path names may be replaced, or made.
struct Place {
  mode_t mode = 0;  // of the file that is there; 0: none
  bool is_replaced = true;
  int error = 0;
};

Place look_at(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return {.error = errno == ENOENT ? 0 : errno};
  if (S_ISDIR(status.st_mode)) return {.error = EISDIR};
  // One that is protected would be replaced all the same.
  if (access(path.c_str(), W_OK) != 0 && !(S_ISLNK(status.st_mode) && errno == ENOENT))
    return {.error = errno};
  return {.mode = status.st_mode & 0777, .is_replaced = S_ISREG(status.st_mode)};
}

struct NewFile {
  std::string path;
  int file = -1;
};

// A file that nobody else has, in the folder of `path`. Without one, errno says why.
NewFile make_beside(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string name = ".unfinished-" + std::to_string(getpid()) + "-";
  for (uint32_t number = 0;; ++number) {
    NewFile made{.path = (folder / (name + std::to_string(number))).string()};
    made.file = open(made.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made.file >= 0 || errno != EEXIST) return made;
  }
}

int replace(const std::string& path, mode_t mode, std::string_view text) {
  const NewFile made = make_beside(path);
  if (made.file < 0) return errno;
  if (mode != 0) fchmod(made.file, mode);
  int error = write_and_close(made.file, text);
  if (error == 0 && rename(made.path.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) unlink(made.path.c_str());
  return error;
}

Status written(const std::string& path, int error) {
  if (error == 0) return Unit{};
  return Error{.kind = ErrorKind::storage,
               .text = path + ": cannot be written: " + std::generic_category().message(error)};
}

}  // namespace

Status write_whole_file(const std::string& path, std::string_view text) {
  const Place place = look_at(path);
  if (place.error != 0) return written(path, place.error);
  return written(path,
                 place.is_replaced ? replace(path, place.mode, text) : write_in_place(path, text));
}

Status check_whole_file(const std::string& path) {
  const Place place = look_at(path);
  if (place.error != 0 || !place.is_replaced) return written(path, place.error);
  const NewFile made = make_beside(path);
  if (made.file < 0) return written(path, errno);
  close(made.file);
  unlink(made.path.c_str());
  return Unit{};
}

}  // namespace rehearsal::record
