#include "command_line/sweeper.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace rehearsal::command_line {
namespace {

constexpr int kToldDescriptor = 3;

// Of a line that comes it ends; of the pipe's end, without one, it removes. The shell itself ends
// at once: this process has no child to wait for.
constexpr const char* kScript = R"(( read -r line <&3 || rm -rf -- "$0" ) >/dev/null 2>&1 &)";

// Starts the shell in a session of its own, where Ctrl-C does not reach it. It keeps open nothing
// of this process but the pipe: whoever reads this one's output sees its end.
bool start(const std::string& folder, int told) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  if (posix_spawn_file_actions_init(&files) != 0) return false;
  if (posix_spawnattr_init(&attributes) != 0) {
    posix_spawn_file_actions_destroy(&files);
    return false;
  }
  bool good = posix_spawn_file_actions_adddup2(&files, told, kToldDescriptor) == 0;
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    good &= posix_spawn_file_actions_addopen(&files, standard, "/dev/null", O_RDWR, 0) == 0;
  good &= posix_spawn_file_actions_addclosefrom_np(&files, kToldDescriptor + 1) == 0;
  good &= posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID) == 0;
  const std::array<const char*, 5> words = {"sh", "-c", kScript, folder.c_str(), nullptr};
  const std::array<const char*, 2> variables = {"PATH=/usr/bin:/bin", nullptr};
  pid_t shell = -1;
  good = good &&
         posix_spawn(&shell, "/bin/sh", &files, &attributes, const_cast<char* const*>(words.data()),
                     const_cast<char* const*>(variables.data())) == 0;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (!good) return false;
  int status = 0;
  while (waitpid(shell, &status, 0) < 0 && errno == EINTR) {
  }
  return true;
}

}  // namespace

Sweeper::Sweeper(const std::string& folder) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  if (start(folder, ends[0])) {
    told_ = ends[1];
  } else {
    close(ends[1]);
  }
  close(ends[0]);
}

Sweeper::~Sweeper() {
  if (told_ < 0) return;
  // Where it cannot be told it finds that the folder is gone.
  [[maybe_unused]] const ssize_t written = write(told_, "\n", 1);
  close(told_);
}

}  // namespace rehearsal::command_line
