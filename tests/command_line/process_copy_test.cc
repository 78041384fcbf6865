// Copies of a process in place of its binary started anew.
#include "command_line/process_copy.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <future>
#include <iostream>
#include <string>
#include <thread>

#include "command_line/child_process.h"
#include "command_line/commands.h"
#include "tests/command_line/toy.h"
#include "tests/scenarios/tool_run.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::command_line {
namespace {

// A thread that only waits, for the life of this object.
class WaitingThread {
 public:
  WaitingThread() : thread_([ended = end_.get_future()] { ended.wait(); }) {}
  ~WaitingThread() {
    end_.set_value();
    thread_.join();
  }
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;

 private:
  std::promise<void> end_;
  std::thread thread_;
};

TEST(ProcessCopy, IsNotMadeOfAProcessWithThreads) {
  EXPECT_TRUE(can_be_copied());
  {
    const WaitingThread thread;
    EXPECT_FALSE(can_be_copied());
  }
  EXPECT_TRUE(can_be_copied());
}

TEST(ProcessCopy, IsNotMadeWhereADeviceIsOpen) {
  // Of an accelerator's driver nothing is here: any device that is neither memory nor a terminal.
  int device = -1;
  for (const char* name : {"/dev/rtc0", "/dev/autofs", "/dev/hwrng", "/dev/fuse", "/dev/kvm"})
    if (device < 0) device = open(name, O_RDONLY | O_CLOEXEC);
  if (device < 0) GTEST_SKIP() << "no device may be opened here";
  EXPECT_FALSE(can_be_copied());
  close(device);
  EXPECT_TRUE(can_be_copied());
}

TEST(ProcessCopy, ThinksOfDevicesOfMemoryAsOfFiles) {
  const int device = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(device, 0);
  EXPECT_TRUE(can_be_copied());
  close(device);
}

TEST(ProcessCopy, HasOfItsParentWhatExecWouldLeave) {
  std::array<int, 2> closed{};
  std::array<int, 2> kept{};
  ASSERT_EQ(pipe2(closed.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(kept.data(), 0), 0);
  const auto handler_before = signal(SIGUSR1, [](int) {});
  const auto ignored_before = signal(SIGUSR2, SIG_IGN);
  static_cast<void>(at::rand({4}));
  const int status = status_of_copy({{"REHEARSAL_COPY", "made"}}, [&] {
    int right = 0;
    right += fcntl(closed[0], F_GETFD) == -1 && fcntl(closed[1], F_GETFD) == -1 ? 1 : 0;
    right += fcntl(kept[0], F_GETFD) != -1 && fcntl(kept[1], F_GETFD) != -1 ? 2 : 0;
    right += signal(SIGUSR1, SIG_DFL) == SIG_DFL ? 4 : 0;
    right += signal(SIGUSR2, SIG_DFL) == SIG_IGN ? 8 : 0;
    right += std::string(std::getenv("REHEARSAL_COPY")) == "made" ? 16 : 0;
    // The generator gives what it gives a new process, and not what comes next here.
    at::Generator anew = at::make_generator<at::CPUGeneratorImpl>(c10::default_rng_seed_val);
    right += at::rand({4}).equal(at::rand({4}, anew)) ? 32 : 0;
    return right;
  });
  signal(SIGUSR1, handler_before);
  signal(SIGUSR2, ignored_before);
  for (const int end : {closed[0], closed[1], kept[0], kept[1]}) close(end);
  EXPECT_EQ(status, 63);
  EXPECT_EQ(std::getenv("REHEARSAL_COPY"), nullptr);
}

TEST(ProcessCopy, EndsWithoutTheDestructorsOfStaticObjectsAndWithAllThatItWrote) {
  const TemporaryFolder folder;
  static const std::string written = folder.file("written");
  struct Telling {
    ~Telling() {
      if (!written.empty() && access(written.c_str(), F_OK) == 0) _exit(9);
    }
  };
  static const Telling telling;
  const int status = status_of_copy({{"REHEARSAL_COPY", "made"}}, [] {
    if (std::freopen(written.c_str(), "w", stdout) == nullptr) return 1;
    std::printf("by stdio, ");
    std::cout << "by streams";
    return 5;
  });
  EXPECT_EQ(status, 5);
  EXPECT_EQ(read_whole_file(written), "by stdio, by streams");
}

// The answer of a child of a toy hunt.
Json answer_of_child() {
  const std::vector<Scenario> scenarios = toy::scenarios();
  const Backends backends = toy::backends();
  const Tool tool{"rehearsal", scenarios, backends, false};
  RunSettings settings;
  settings.scenario = &scenarios.front();
  settings.options = scenarios.front().options.parse({}, "tiny");
  settings.seed = Seed{41};
  ChildProcess child({.arguments = {kChildCommand},
                      .tool = &tool,
                      .environment = {{kToolVariable, "1"}, {"LOGNAME", "reader"}}});
  child.send(to_json(settings));
  child.close_requests();
  Json answer;
  while (!child.reports_ended()) {
    wait_for_reports({&child});
    for (const Json& report : child.take_reports()) answer = report;
  }
  EXPECT_EQ(child.wait(), 0);
  return answer;
}

TEST(ProcessCopy, ServesAsAChildThatWasStartedAnewDoes) {
  const Json of_copy = answer_of_child();
  const WaitingThread thread;
  const Json anew = answer_of_child();
  EXPECT_EQ(of_copy["fingerprint"], "41000");
  EXPECT_EQ(of_copy, anew);
}

}  // namespace
}  // namespace rehearsal::command_line
