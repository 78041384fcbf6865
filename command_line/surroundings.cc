#include "command_line/surroundings.h"

#include <locale.h>
#include <sched.h>

#include <filesystem>
#include <utility>

#include "command_line/commands.h"

namespace rehearsal::command_line {
namespace {

// The second process gets the first of these that is installed. All but the last write numbers or
// sort words otherwise than C does.
constexpr const char* kLocales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8", "cs_CZ.UTF-8",
                                    "ru_RU.UTF-8", "da_DK.UTF-8", "C.UTF-8"};

std::string other_locale() {
  for (const char* name : kLocales) {
    const locale_t made = newlocale(LC_ALL_MASK, name, nullptr);
    if (made == nullptr) continue;
    freelocale(made);
    return name;
  }
  return "POSIX";
}

// The lowest and the highest core that this process may run on.
std::pair<int, int> outer_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::pair<int, int> outer{-1, -1};
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return outer;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores)) continue;
    if (outer.first < 0) outer.first = core;
    outer.second = core;
  }
  return outer;
}

std::string other_directory() {
  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::current_path(ignored);
  return here == "/" ? std::filesystem::temp_directory_path(ignored).string() : "/";
}

}  // namespace

Surroundings make_surroundings() {
  Surroundings made;
  made.first.arguments = {kChildCommand};
  made.first.environment = {{"LC_ALL", "C"}, {"TZ", "UTC0"}, {"MALLOC_PERTURB_", "0"}};
  const std::string locale = other_locale();
  // Freed memory is not given out again at once, and what is given out is filled with 165 xor 255.
  made.second = {.arguments = {kChildCommand, kScatterWord},
                 .environment = {{"LC_ALL", locale},
                                 {"LANGUAGE", "de"},
                                 {"TZ", "<+1245>-12:45"},
                                 {"MALLOC_PERTURB_", "165"},
                                 {"MALLOC_ARENA_MAX", "1"},
                                 {"MALLOC_TOP_PAD_", "1048576"},
                                 {"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"},
                                 {"OMP_NUM_THREADS", "3"},
                                 {"MKL_NUM_THREADS", "3"},
                                 {"USER", "somebody"},
                                 {"LOGNAME", "somebody"},
                                 {"HOSTNAME", "elsewhere"},
                                 {"COLUMNS", "133"},
                                 {"TERM", "dumb"},
                                 {"REHEARSAL_PADDING", std::string(4093, 'x')}},
                 .directory = other_directory(),
                 .moved_memory = true};
  made.second.environment["PWD"] = made.second.directory;
  made.differences = "locale " + locale + ", time zone UTC+12:45, folder " + made.second.directory;
  const auto [lowest, highest] = outer_cores();
  if (lowest != highest) {
    made.first.core = lowest;
    made.second.core = highest;
    made.differences +=
        ", core " + std::to_string(highest) + " instead of " + std::to_string(lowest);
  }
  made.differences += ", other variables, addresses and fill of memory";
  return made;
}

}  // namespace rehearsal::command_line
