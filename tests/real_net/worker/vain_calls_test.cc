// A main over TCP that tries again what fails at once is told of in the log.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "core/api/worker.h"
#include "observe/log/failing_callers.h"
#include "real_net/run_worker.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::real {
namespace {

int64_t one_more(const int64_t& number) { return number + 1; }

// Fails so many times, at once, and then gives up.
void try_in_vain(Worker& worker, uint64_t times) {
  for (uint64_t failed = 0; failed < times;) {
    try {
      (void)worker.rpc_sync("ps", &one_more, int64_t{1});
      return;
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::peer_lost);
      ++failed;
    }
  }
}

// Standard error of what `run` does.
std::string errors_of(const std::function<void()>& run) {
  const TemporaryFolder folder;
  const std::string log = folder.file("log");
  const int before = dup(STDERR_FILENO);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  dup2(file, STDERR_FILENO);
  close(file);
  run();
  dup2(before, STDERR_FILENO);
  close(before);
  return read_whole_file(log);
}

TEST(VainCalls, ACallerThatTriesAgainInVainIsOneWarningLine) {
  // Goal: function, worker and error in one line, at the level that a worker has by itself. Method:
  // a dynamic group whose server never comes, and a main that tries without a pause.
  const TemporaryFolder folder;
  FunctionRegistry registry;
  registry.function("one_more", &one_more);
  Program program(registry);
  program.dynamic();
  program.worker("trainer",
                 [](Worker& worker) { try_in_vain(worker, 3 * observe::FailingCallers::kTimes); });
  program.worker("ps", [](Worker&) {});
  WorkerOptions options;
  options.placement = {.rank = 0, .world_size = {}, .rendezvous = "file://" + folder.file("store")};
  options.environment = [](const std::string&) { return std::nullopt; };
  const std::string told = errors_of([&] {
    const Status status = run_worker(options, program);
    EXPECT_TRUE(status.ok()) << to_string(status.error());
  });
  const std::string line =
      " level=warning worker=trainer event=calls_fail function=one_more peer=ps times=1000 "
      "error=peer_lost hint=";
  const size_t place = told.find(line);
  ASSERT_NE(place, std::string::npos) << told;
  EXPECT_EQ(told.find("event=calls_fail", place + line.size()), std::string::npos) << told;
}

}  // namespace
}  // namespace rehearsal::real
