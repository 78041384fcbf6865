#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/process_group.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "tests/real_net/support/nursery.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {

// In a worker's main, which fails with it.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

inline Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const RpcError& error) {
    return error.error();
  }
  throw std::runtime_error("no error");
}

// This process's sockets, by descriptor.
inline std::set<int> own_sockets() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:")) found.insert(std::stoi(entry.path().filename().string()));
  }
  return found;
}

// The addresses at which this process listens, as /proc has them: "0100007F:A2C1".
inline std::vector<std::string> listens_at() {
  std::set<std::string> inodes;
  for (const int descriptor : own_sockets()) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(path, gone).string();
    if (!gone) inodes.insert(target.substr(8, target.size() - 9));
  }
  std::vector<std::string> found;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmit, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmit >> user >>
          timeout >> inode;
      if (state == "0A" && inodes.contains(inode)) found.push_back(local);
    }
  }
  return found;
}

// Workers member0, member1, … as processes that meet in a file.
class GlooTest : public testing::Test {
 protected:
  static Program members(uint32_t count, std::function<void(Worker&)> main) {
    Program program{FunctionRegistry()};
    program.worker("member", std::move(main), Count{count});
    return program;
  }

  [[nodiscard]] WorkerOptions options(uint32_t rank, const std::string& collectives) const {
    WorkerOptions made;
    made.placement = {.rank = rank, .world_size = {}, .rendezvous = "file://" + file_};
    made.environment = [](const std::string&) { return std::nullopt; };
    made.observe.log = "off";
    made.collectives = collectives;
    made.node.heartbeat = std::chrono::milliseconds(200);
    made.node.join_timeout = std::chrono::seconds(60);
    made.node.shutdown_timeout = std::chrono::seconds(60);
    return made;
  }

  // Zero: it ended well. Else it is told why not.
  static int run(const WorkerOptions& options, const Program& program) {
    const Status status = run_worker(options, program);
    if (!status.ok()) std::fprintf(stderr, "%s\n", to_string(status.error()).c_str());
    return status.ok() ? 0 : 1;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("store");
};

}  // namespace rehearsal::real
