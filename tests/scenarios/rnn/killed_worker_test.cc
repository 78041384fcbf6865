// Six processes train; one of them is killed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>

#include "real_net/run_worker.h"
#include "scenarios/rnn/rnn.h"
#include "tests/leased_port.h"

namespace rehearsal::rnn {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kWorkers = 6;
constexpr uint32_t kVictim = 3;
constexpr Duration kPeerTimeout = seconds(10);

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends.data()), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  std::array<int, 2> ends{};
};

// In the child: trains without end, says through `begun` when it goes, and at last through `said`
// how it ended.
[[noreturn]] void be_worker(uint32_t rank, uint16_t port, const Pipe& begun, const Pipe& said) {
  const Scenario scenario = rnn::scenario();
  const Options options =
      scenario.options.parse({"world_size=" + std::to_string(kWorkers), "epochs=10000"}, "tiny");
  Reporter reporter;
  reporter.line = [](const std::string&) {};
  bool told = false;
  reporter.progress = [&](const std::string&) {
    if (!std::exchange(told, true) && write(begun.ends[1], "x", 1) != 1) std::_Exit(9);
  };
  const Program program = scenario.program({options, Seed{1}, reporter});
  real::WorkerOptions made;
  made.placement = {.rank = rank,
                    .world_size = kWorkers,
                    .rendezvous = "tcp://127.0.0.1:" + std::to_string(port)};
  made.environment = [](const std::string&) { return std::nullopt; };
  made.node.peer_timeout = kPeerTimeout;
  made.node.heartbeat = milliseconds(200);
  const Status status = real::run_worker(made, program);
  const std::string text = status.ok() ? "well" : to_string(status.error());
  if (write(said.ends[1], text.data(), text.size()) < 0) std::_Exit(9);
  std::_Exit(status.ok() ? 0 : 1);
}

std::string read_text(const Pipe& from) {
  std::array<char, 4096> text{};
  const ssize_t count = read(from.ends[0], text.data(), text.size());
  return std::string(text.data(), count > 0 ? static_cast<size_t>(count) : 0);
}

TEST(Rnn, TheOthersEndAndNameTheWorkerThatWasKilled) {
  // Goal: each of the five ends with an error that names the dead one. Method: SIGKILL in the
  // middle of training; whoever hangs is ended by its alarm.
  const uint16_t port = leased_port();
  const Pipe begun;
  std::array<Pipe, kWorkers> said;
  std::array<pid_t, kWorkers> children{};
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    children[rank] = fork();
    if (children[rank] == 0) {
      alarm(300);
      be_worker(rank, port, begun, said[rank]);
    }
  }
  char letter = 0;
  ASSERT_EQ(read(begun.ends[0], &letter, 1), 1);
  kill(children[kVictim], SIGKILL);
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    int status = 0;
    EXPECT_EQ(waitpid(children[rank], &status, 0), children[rank]);
    if (rank == kVictim) continue;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << rank << ": " << status;
    const std::string text = read_text(said[rank]);
    EXPECT_NE(text.find("trainer2"), std::string::npos) << "rank " << rank << ": " << text;
  }
}

}  // namespace
}  // namespace rehearsal::rnn
