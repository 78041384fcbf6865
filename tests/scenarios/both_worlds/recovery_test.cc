// Goal: a training over TCP outlives the SIGKILL of each role, and ends with the bits of one
// process. Method: a process for each worker of `recovery`; one after another is killed when its
// training has saved a few more steps, and started again.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kWorkers = 4;  // trainer0, trainer1, owner0, owner1
constexpr auto kPatience = std::chrono::seconds(60);

// One worker in a process of its own, which ends with this one.
class Process {
 public:
  Process(int rank, const std::string& folder, int life)
      : output_(folder + "/output" + std::to_string(rank) + "." + std::to_string(life)) {
    const std::vector<std::string> words = {"rehearsal",
                                            "worker",
                                            "recovery",
                                            "--rank",
                                            std::to_string(rank),
                                            "--world-size",
                                            "4",
                                            "--rendezvous",
                                            "file://" + folder + "/store",
                                            "--checkpoints",
                                            folder + "/checkpoints",
                                            "--set",
                                            "steps=1500",
                                            "--set",
                                            "save_every=20",
                                            "--peer-timeout",
                                            "3s",
                                            "--heartbeat",
                                            "500ms",
                                            "--json"};
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    setenv(kToolVariable, "1", 1);
    const pid_t maker = getpid();
    process_ = fork();
    if (process_ != 0) {
      unsetenv(kToolVariable);  // Or it would be that of the tests that come later, too.
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != maker) _exit(1);
    if (freopen(output_.c_str(), "w", stdout) == nullptr) _exit(126);
    if (freopen((output_ + ".errors").c_str(), "w", stderr) == nullptr) _exit(126);
    execv("/proc/self/exe", arguments.data());
    _exit(127);
  }
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void kill() {
    if (ended()) return;
    ::kill(process_, SIGKILL);
    int status = 0;
    waitpid(process_, &status, 0);
    status_ = status;
  }
  bool ended() {
    int status = 0;
    if (!status_ && waitpid(process_, &status, WNOHANG) == process_) status_ = status;
    return status_.has_value();
  }
  bool ended_well() const { return status_ == 0; }
  std::string said() const { return read_whole_file(output_); }
  std::string errors() const { return read_whole_file(output_ + ".errors"); }

 private:
  const std::string output_;
  pid_t process_ = -1;
  std::optional<int> status_;
};

class Training {
 public:
  Training() {
    for (int rank = 0; rank < kWorkers; ++rank) start(rank);
  }

  void start(int rank) {
    processes_[rank] = std::make_unique<Process>(rank, folder_.path().string(), lives_[rank]++);
  }
  Process& process(int rank) { return *processes_[rank]; }

  // Until the leader has written its part so many times more.
  [[nodiscard]] bool saves(int times) const {
    const auto limit = steady_clock::now() + kPatience;
    std::filesystem::file_time_type last{};
    for (int seen = 0; seen < times; std::this_thread::sleep_for(milliseconds(2))) {
      if (steady_clock::now() > limit) return false;
      std::error_code none;
      const auto now = std::filesystem::last_write_time(
          folder_.file("checkpoints/trainer0/training.head.pt"), none);
      if (none || now == last) continue;
      last = now;
      ++seen;
    }
    return true;
  }
  [[nodiscard]] bool ends() {
    const auto limit = steady_clock::now() + kPatience;
    for (int rank = 0; rank < kWorkers;) {
      if (processes_[rank]->ended())
        ++rank;
      else if (steady_clock::now() > limit)
        return false;
      else
        std::this_thread::sleep_for(milliseconds(10));
    }
    return true;
  }

 private:
  const TemporaryFolder folder_;
  std::unique_ptr<Process> processes_[kWorkers];
  int lives_[kWorkers] = {};
};

TEST(Recovery, OverTcpEachRoleMayBeKilled) {
  Training training;
  for (const int victim : {2, 1, 0, 3}) {
    ASSERT_TRUE(training.saves(4)) << training.process(0).errors();
    ASSERT_FALSE(training.process(victim).ended()) << training.process(victim).errors();
    training.process(victim).kill();
    training.start(victim);
  }
  ASSERT_TRUE(training.ends()) << training.process(0).errors() << training.process(2).errors();
  for (int rank = 0; rank < kWorkers; ++rank)
    EXPECT_TRUE(training.process(rank).ended_well())
        << rank << ": " << training.process(rank).errors();
  // Not begun anew: what was lost last cost the leader's process a life, not its steps.
  const std::string told = training.process(0).errors();
  EXPECT_NE(told.find("trainer0: life "), std::string::npos) << told;
  EXPECT_NE(told.find("trainer0 goes on from step "), std::string::npos) << told;
  const Json result = Json::parse(training.process(0).said());
  EXPECT_EQ(result.at("results").at("bits of one process"), 1) << result.dump();
}

}  // namespace
}  // namespace rehearsal::command_line
