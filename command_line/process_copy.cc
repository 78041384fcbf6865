#include "command_line/process_copy.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

namespace rehearsal::command_line {
namespace {

#ifdef REHEARSAL_COVERAGE
constexpr bool kWritesAtTheEnd = true;
#else
constexpr bool kWritesAtTheEnd = false;
#endif

// Linux's number for null, zero, random and the like.
constexpr unsigned kMemoryDevices = 1;

// Of this process. Listed before any is used: the listing has a descriptor of its own.
std::vector<int> open_descriptors() {
  std::vector<int> descriptors;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    descriptors.push_back(descriptor);
  }
  return descriptors;
}

bool is_device(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISCHR(status.st_mode) &&
         major(status.st_rdev) != kMemoryDevices && isatty(descriptor) == 0;
}

size_t thread_count() {
  std::error_code error;
  const std::filesystem::directory_iterator threads("/proc/self/task", error);
  return static_cast<size_t>(std::distance(begin(threads), end(threads)));
}

void forget_handlers() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    if (action.sa_handler != SIG_DFL) signal(number, SIG_DFL);
  }
}

}  // namespace

bool can_be_copied() {
  const std::vector<int> descriptors = open_descriptors();
  return !kWritesAtTheEnd && thread_count() == 1 &&
         std::none_of(descriptors.begin(), descriptors.end(), is_device);
}

void flush_streams() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

void begin_copy(const std::map<std::string, std::string>& environment) {
  for (const int descriptor : open_descriptors()) {
    const int flags = fcntl(descriptor, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) != 0) close(descriptor);
  }
  forget_handlers();
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_current_seed(c10::default_rng_seed_val);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
}

void end_copy(int status) {
  flush_streams();
  _exit(status);
}

}  // namespace rehearsal::command_line
