// A run over TCP that does not come to its end: nothing of it stays.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

bool comes_true(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

// The processes that one has started, by pidfd: so none is taken for another.
std::vector<int> children_of(pid_t parent) {
  std::vector<int> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const size_t name_end = stat.rfind(") ");
    if (name_end == std::string::npos || std::atoi(stat.c_str() + name_end + 4) != parent) continue;
    const int process = static_cast<int>(syscall(SYS_pidfd_open, std::atoi(number.c_str()), 0));
    if (process >= 0) children.push_back(process);
  }
  return children;
}
bool has_ended(int process) {
  pollfd look{.fd = process, .events = POLLIN, .revents = 0};
  return poll(&look, 1, 0) == 1;
}

// The tool in a process group of its own, as a shell starts it; it ends with this process.
class EarlyEnd : public ::testing::Test {
 protected:
  void start(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const std::string out = folder_.file("out");
    const std::string temporary = temporary_.path().string();
    setenv(kToolVariable, "1", 1);
    const pid_t maker = getpid();
    tool_ = fork();
    if (tool_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setpgid(0, 0);
      signal(SIGINT, SIG_DFL);
      setenv("TMPDIR", temporary.c_str(), 1);
      if (getppid() != maker) _exit(1);
      if (freopen(out.c_str(), "w", stdout) == nullptr) _exit(126);
      dup2(STDOUT_FILENO, STDERR_FILENO);
      if (file_size_max_ > 0) {
        const rlimit limit{.rlim_cur = file_size_max_, .rlim_max = file_size_max_};
        setrlimit(RLIMIT_FSIZE, &limit);
      }
      execv("/proc/self/exe", arguments.data());
      _exit(127);
    }
    unsetenv(kToolVariable);
  }
  // A run that would take minutes, once all its workers are there.
  void start_long_run() {
    start({"rehearsal", "run", "storm", "--net", "tcp", "--set", "operations=100000"});
    ASSERT_TRUE(comes_true([this] {
      for (const int worker : workers_) close(worker);
      workers_ = children_of(tool_);
      return workers_.size() == kWorkers;
    })) << read_whole_file(folder_.file("out"));
    EXPECT_FALSE(temporary_is_empty());
  }
  int status() {
    int status = -1;
    EXPECT_EQ(waitpid(tool_, &status, 0), tool_);
    tool_ = -1;
    return status;
  }
  void expect_nothing_stays() {
    for (const int worker : workers_)
      EXPECT_TRUE(comes_true([worker] { return has_ended(worker); }));
    EXPECT_TRUE(comes_true([this] { return temporary_is_empty(); }));
  }
  void TearDown() override {
    for (const int worker : workers_) close(worker);
    if (tool_ <= 0) return;
    kill(tool_, SIGKILL);
    status();
  }

  [[nodiscard]] bool temporary_is_empty() const {
    return std::filesystem::is_empty(temporary_.path());
  }

  static constexpr size_t kWorkers = 4;
  rlim_t file_size_max_ = 0;  // of the tool; zero: any
  TemporaryFolder folder_;
  TemporaryFolder temporary_;
  pid_t tool_ = -1;
  std::vector<int> workers_;
};

TEST_F(EarlyEnd, ByCtrlCLeavesNoWorkerAndNoFile) {
  // Method: the signal goes to all of the process group, as a terminal sends it.
  start_long_run();
  kill(-tool_, SIGINT);
  const int ended = status();
  EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGINT) << ended;
  expect_nothing_stays();
}

TEST_F(EarlyEnd, ByTheDeathOfTheToolLeavesNoWorkerAndNoFile) {
  start_long_run();
  kill(tool_, SIGKILL);
  const int ended = status();
  EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL) << ended;
  expect_nothing_stays();
}

TEST_F(EarlyEnd, ByAFileThatMayNotGrowIsToldByItsNameAndLeavesNone) {
  // Goal: a limit of files (ulimit -f) is an error, as a full disk is, and no signal ends a worker.
  // Method: records may have a tenth of their size.
  file_size_max_ = 1 << 20;
  const std::string records = folder_.file("records");
  start({"rehearsal", "run", "quickstart", "--set", "size=tiny", "--net", "tcp", "--record-size",
         "10M", "--record", records});
  const int ended = status();
  EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 1) << ended;
  const std::string said = read_whole_file(folder_.file("out"));
  EXPECT_NE(said.find(".record cannot be written: File too large"), std::string::npos) << said;
  EXPECT_TRUE(std::filesystem::is_empty(records));
  expect_nothing_stays();
}

}  // namespace
}  // namespace rehearsal::command_line
