// Which folder may include what.
#include <algorithm>
#include <array>
#include <span>

#include "tests/tidy/rules.h"

namespace rehearsal::tidy {
namespace {

using std::string_view;

bool starts_with_any(string_view text, std::span<const string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [text](string_view prefix) { return text.starts_with(prefix); });
}

// The first row whose folder holds the file decides which files of the repository it may include.
struct FolderRow {
  string_view folder;
  std::vector<string_view> may_include;
};

const std::vector<FolderRow>& folder_rows() {
  static const std::vector<FolderRow> rows = {
      {"core/base/", {"core/base/"}},
      {"core/fibers/", {"core/fibers/", "core/base/"}},
      {"core/values/", {"core/values/", "core/base/"}},
      {"core/functions/", {"core/functions/", "core/values/", "core/base/"}},
      {"core/wire/", {"core/wire/", "core/values/", "core/base/"}},
      // A header that a user includes reaches none of the tables behind it.
      {"core/api/", {"core/api/", "core/wire/", "core/functions/", "core/values/", "core/base/"}},
      {"core/session/", {"core/session/", "core/wire/", "core/values/", "core/base/"}},
      {"core/calls/",
       {"core/calls/", "core/api/", "core/session/", "core/wire/", "core/functions/",
        "core/values/", "core/base/"}},
      {"core/rref/",
       {"core/rref/", "core/api/", "core/calls/", "core/session/", "core/wire/", "core/functions/",
        "core/values/", "core/base/"}},
      {"core/checkpoint/",
       {"core/checkpoint/", "core/api/", "core/functions/", "core/values/", "core/base/"}},
      {"core/nn/",
       {"core/nn/", "core/checkpoint/", "core/api/", "core/functions/", "core/values/",
        "core/base/"}},
      {"core/autograd/",
       {"core/autograd/", "core/api/", "core/calls/", "core/session/", "core/wire/",
        "core/functions/", "core/values/", "core/base/"}},
      {"core/optim/",
       {"core/optim/", "core/checkpoint/", "core/autograd/", "core/api/", "core/functions/",
        "core/values/", "core/base/"}},
      {"core/collectives/",
       {"core/collectives/", "core/autograd/", "core/api/", "core/calls/", "core/session/",
        "core/functions/", "core/values/", "core/base/"}},
      {"core/groups/",
       {"core/groups/", "core/calls/", "core/api/", "core/session/", "core/wire/",
        "core/functions/", "core/values/", "core/base/"}},
      {"core/node/",
       {"core/node/", "core/api/", "core/groups/", "core/optim/", "core/autograd/", "core/nn/",
        "core/checkpoint/", "core/collectives/", "core/rref/", "core/calls/", "core/session/",
        "core/wire/", "core/functions/", "core/values/", "core/base/"}},
      {"net_fake/", {"net_fake/", "core/base/"}},
      {"record/", {"record/", "core/base/", "core/node/"}},
      {"observe/", {"observe/", "core/base/", "core/wire/message.h"}},
      {"sim/gtest/", {"sim/", "observe/"}},
      // For any program of LibTorch.
      {"sim/device/", {"sim/device/", "sim/places/", "sim/simulated_devices.h"}},
      {"sim/places/", {"sim/places/", "core/base/"}},
      {"sim/simulated_devices.h", {""}},
      {"sim/", {"sim/", "net_fake/", "record/", "core/"}},
      {"real_net/runtime/", {"real_net/runtime/", "core/base/", "core/fibers/"}},
      {"real_net/auth/", {"real_net/auth/", "real_net/runtime/", "core/base/"}},
      {"real_net/tcp/", {"real_net/tcp/", "real_net/auth/", "real_net/runtime/", "core/base/"}},
      {"real_net/", {"real_net/", "observe/", "record/", "core/"}},
      {"coverage/", {"coverage/", "core/base/"}},
      {"command_line/",
       {"command_line/", "sim/", "real_net/", "observe/", "record/", "core/base/", "core/api/",
        "core/node/"}},
      // A program that uses the library comes in by its doors only.
      {"scenarios/",
       {"scenarios/", "core/api/", "core/base/", "sim/cluster.h", "sim/oracle.h", "sim/oracles/",
        "sim/values.h", "real_net/run_worker.h", "command_line/command_line.h",
        "command_line/scenario.h", "command_line/wrong_use.h"}},
      {"tests/", {""}},
  };
  return rows;
}

// An outside header, by how its name starts, and the only folders that may include it.
struct HeaderRow {
  string_view header;
  std::vector<string_view> folders;
  string_view reason;
};

constexpr string_view kCore = "core/";
constexpr string_view kTool = "command_line/";

const std::vector<HeaderRow>& header_rows() {
  static const std::vector<HeaderRow> rows = {
      {"boost/fiber/",
       {"core/fibers/", "scenarios/shared_state/", "tests/"},
       "executions share state with Boost.Fiber's primitives; here none do"},
      {"boost/", {"core/fibers/", "tests/"}, "fibers are switched in core/fibers only"},
      {"torch/torch.h",
       {"scenarios/", "tests/"},
       "it costs 18 s a file; include the narrow headers of LibTorch"},
      {"torch/", {kCore, "sim/", "real_net/", kTool, "scenarios/", "tests/"}, "no LibTorch here"},
      {"ATen/", {kCore, "sim/", "real_net/", kTool, "scenarios/", "tests/"}, "no LibTorch here"},
      {"c10/", {kCore, "sim/", "real_net/", kTool, "scenarios/", "tests/"}, "no LibTorch here"},
      {"gtest/", {"sim/", "tests/"}, "GoogleTest belongs to tests and to sim's helper for them"},
      {"CLI/", {kTool, "tests/"}, "options are parsed in command_line"},
      {"spdlog/", {"observe/log/"}, "LibTorch ships another fmt"},
      {"fmt/", {"observe/log/"}, "LibTorch ships another fmt"},
  };
  return rows;
}

// Clocks, threads, locks, atomics, sockets and random sources.
constexpr std::array<string_view, 32> kNondeterministicHeaders = {
    "thread",       "mutex",        "shared_mutex",  "condition_variable",
    "atomic",       "semaphore",    "barrier",       "latch",
    "future",       "stop_token",   "random",        "ctime",
    "time.h",       "sys/time.h",   "sys/timerfd.h", "pthread.h",
    "sched.h",      "signal.h",     "csignal",       "poll.h",
    "sys/epoll.h",  "sys/select.h", "sys/eventfd.h", "sys/socket.h",
    "sys/random.h", "netinet/in.h", "netinet/tcp.h", "arpa/inet.h",
    "netdb.h",      "sys/uio.h",    "unistd.h",      "sys/mman.h"};

// Folders that are a pure function of the seed, and the files in them that measure, guard or switch
// what the rest must not touch.
constexpr std::array<string_view, 5> kDeterministicFolders = {"core/", "net_fake/", "sim/",
                                                              "scenarios/", "observe/"};
constexpr std::array<string_view, 10> kMayTouchTheMachine = {
    "observe/log/",             // its sink has a lock
    "core/fibers/",             // stacks
    "scenarios/shared_state/",  // guards of Boost.Fiber's mutexes
    "sim/device/machine",       // threads of a process share its devices
    "sim/device/memory",        // addresses that nobody may touch
    "sim/device/pinned",        // memory of the process, which threads share
    "sim/device/random",        // a generator of LibTorch has a lock
    "sim/device/selection",     // each thread of a process has its own of its devices
    "sim/hunt/",                // limits of wall time, the environment of a CI job, fatal signals
    "sim/world/clock_guard"};   // what stops the rest

void check_repository_include(const SourceText& source, const Include& include,
                              Findings& findings) {
  for (const FolderRow& row : folder_rows()) {
    if (!source.path.starts_with(row.folder)) continue;
    if (!starts_with_any(include.file, row.may_include))
      findings.push_back({source.path, include.line,
                          std::string(row.folder) + " must not include " + include.file});
    return;
  }
  findings.push_back({source.path, include.line, "no rule says what this folder may include"});
}

void check_outside_include(const SourceText& source, const Include& include, Findings& findings) {
  for (const HeaderRow& row : header_rows()) {
    if (!include.file.starts_with(row.header)) continue;
    if (!starts_with_any(source.path, row.folders))
      findings.push_back(
          {source.path, include.line, "<" + include.file + ">: " + std::string(row.reason)});
    break;
  }
  if (std::ranges::find(kNondeterministicHeaders, include.file) != kNondeterministicHeaders.end() &&
      starts_with_any(source.path, kDeterministicFolders) &&
      !starts_with_any(source.path, kMayTouchTheMachine))
    findings.push_back(
        {source.path, include.line,
         "<" + include.file + ">: no clock, thread, lock, socket or randomness here"});
}

}  // namespace

Findings check_includes(const SourceText& source) {
  Findings findings;
  const bool is_header = source.path.ends_with(".h");
  for (const Include& include : includes_of(source)) {
    if (include.quoted && !include.file.ends_with(".pb.h"))
      check_repository_include(source, include, findings);
    else
      check_outside_include(source, include, findings);
    if (is_header && include.file.ends_with(".pb.h"))
      findings.push_back({source.path, include.line, "generated messages stay out of headers"});
  }
  return findings;
}

}  // namespace rehearsal::tidy
