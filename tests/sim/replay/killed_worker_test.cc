// A worker's process is killed while it runs a function; its record is replayed to that function.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "sim/replay/replay.h"
#include "tests/temporary_folder.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kCalls = 40;

// Whether the function kills its process; in the replay it only counts.
bool& deadly() {
  static bool is_deadly = false;
  return is_deadly;
}
int64_t& last_number() {
  static int64_t number = -1;
  return number;
}
int64_t& deaths() {
  static int64_t count = 0;
  return count;
}

int64_t work(int64_t number) { return last_number() = number; }

void die() {
  if (deadly()) kill(getpid(), SIGKILL);
  ++deaths();
}

FunctionRegistry served_functions() {
  FunctionRegistry registry;
  registry.function("work", &work).function("die", &die);
  return registry;
}

Program program() {
  Program program(served_functions());
  program.worker("ps").worker("trainer", [](Worker& worker) {
    for (int64_t i = 0; i < kCalls; ++i) worker.rpc_sync("ps", &work, i);
    worker.rpc_sync("ps", &die);
  });
  return program;
}

[[noreturn]] void be_worker(uint32_t rank, const TemporaryFolder& folder) {
  alarm(60);
  deadly() = true;
  real::WorkerOptions options;
  options.placement = {
      .rank = rank, .world_size = 2, .rendezvous = "file://" + folder.file("meeting")};
  options.environment = [](const std::string&) { return std::nullopt; };
  options.node.peer_timeout = milliseconds(1'000);
  options.node.heartbeat = milliseconds(100);
  options.record = {.folder = folder.path().string(), .bytes = uint64_t{4} << 20};
  std::_Exit(real::run_worker(options, program()).ok() ? 0 : 1);
}

TEST(Replay, GoesOnToWhereAKilledWorkerDied) {
  // Goal: nothing that the strand took is missing, and what the worker did last it does again, as
  // it would in a debugger. Method: SIGKILL from within a function.
  const TemporaryFolder folder;
  std::array<pid_t, 2> children{};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] == 0) be_worker(rank, folder);
  }
  std::array<int, 2> statuses{};
  for (uint32_t rank = 0; rank < 2; ++rank) waitpid(children[rank], &statuses[rank], 0);
  EXPECT_TRUE(WIFSIGNALED(statuses[0]) && WTERMSIG(statuses[0]) == SIGKILL) << statuses[0];
  EXPECT_TRUE(WIFEXITED(statuses[1]) && WEXITSTATUS(statuses[1]) == 1) << statuses[1];
  deaths() = 0;

  const auto killed = record::read_record(folder.file("ps.record")).or_throw();
  const ReplayReport report = replay(*killed, program());
  EXPECT_FALSE(report.divergence.has_value()) << report.divergence->text;
  EXPECT_FALSE(report.ended);
  EXPECT_EQ(last_number(), kCalls - 1);
  EXPECT_EQ(deaths(), 1);

  const auto other = record::read_record(folder.file("trainer.record")).or_throw();
  const ReplayReport survivor = replay(*other, program());
  EXPECT_FALSE(survivor.divergence.has_value()) << survivor.divergence->text;
  EXPECT_TRUE(survivor.ended);
  ASSERT_TRUE(survivor.failure.has_value());
  EXPECT_NE(to_string(*survivor.failure).find("'ps'"), std::string::npos);
  EXPECT_EQ(deaths(), 1);
}

}  // namespace
}  // namespace rehearsal::sim
