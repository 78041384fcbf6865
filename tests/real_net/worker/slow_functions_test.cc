// Functions that take long are named in the log of their worker.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/fiber/mutex.hpp>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::atomic<bool> nobody_waits = false;

bool is_over(const std::string& file, const std::string& text) {
  return nobody_waits || read_whole_file(file).find(text) != std::string::npos;
}

// Loops until the file has the text, or nobody waits for it any more.
int64_t spin_until(const std::string& file, const std::string& text) {
  int64_t turns = 0;
  while (!is_over(file, text)) ++turns;
  return turns;
}

// Keeps a mutex for as long.
boost::fibers::mutex kept;
void keep_until(CallContext& context, const std::string& file, const std::string& text) {
  const std::lock_guard lock(kept);
  while (!is_over(file, text)) context.sleep(milliseconds(10));
}

// While it lives, standard error goes to a file.
class ErrorsToFile {
 public:
  explicit ErrorsToFile(const std::string& file) : before_(dup(STDERR_FILENO)) {
    const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    dup2(opened, STDERR_FILENO);
    close(opened);
  }
  ~ErrorsToFile() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  ErrorsToFile(const ErrorsToFile&) = delete;

 private:
  const int before_;
};

WorkerOptions quick_to_tell(const std::string& store, uint32_t rank) {
  WorkerOptions made;
  made.placement = {.rank = rank, .world_size = 2, .rendezvous = "file://" + store};
  made.environment = [](const std::string&) { return std::nullopt; };
  made.observe.slow_after = milliseconds(50);
  return made;
}

// The log of two workers while the trainer does this, with the file in which it is.
std::string log_of(const std::function<void(const Calls&, const std::string& file)>& act) {
  const TemporaryFolder folder;
  const std::string file = folder.file("log");
  nobody_waits = false;
  FunctionRegistry registry;
  registry.function("spin_until", &spin_until).function("keep_until", &keep_until);
  Program program(std::move(registry));
  program.worker("ps").worker("trainer", [&file, &act](Worker& worker) {
    try {
      act(worker.with_timeout(Timeout(seconds(60))), file);
    } catch (const RpcError& error) {
      ADD_FAILURE() << error.what();
    }
    nobody_waits = true;
  });
  std::array<std::optional<Status>, 2> ends;
  {
    const ErrorsToFile captured(file);
    std::vector<std::thread> workers;
    for (const uint32_t rank : {0u, 1u})
      workers.emplace_back([&, rank] {
        ends[rank] = run_worker(quick_to_tell(folder.file("store"), rank), program);
      });
    for (std::thread& worker : workers) worker.join();
  }
  for (const auto& end : ends) EXPECT_TRUE(end->ok()) << end->error().text;
  return read_whole_file(file);
}

TEST(SlowFunctions, OneThatLoopsIsNamedInTheLogOfItsWorker) {
  // Goal: a line while it runs, another one when it ends. Method: it loops until the first is
  // there.
  const std::string told = log_of([](const Calls& calls, const std::string& file) {
    EXPECT_GT(calls.rpc_sync("ps", &spin_until, file, std::string(" event=runs_long ")), 0);
  });
  const size_t runs = told.find(" worker=ps event=runs_long what=spin_until for_seconds=");
  ASSERT_NE(runs, std::string::npos) << told;
  EXPECT_NE(told.find(" worker=ps event=ran_long what=spin_until for_seconds=", runs),
            std::string::npos)
      << told;
  EXPECT_EQ(told.find("worker=trainer event=runs_long"), std::string::npos) << told;
}

TEST(SlowFunctions, OneThatWaitsForAMutexIsNamedInTheLogWithWhoHoldsIt) {
  // Goal: a line while it waits. Method: two take the mutex, and the first lets go when the line is
  // there.
  const std::string told = log_of([](const Calls& calls, const std::string& file) {
    const std::string line = " event=waits_long ";
    const Future<Unit> first = calls.rpc_async("ps", &keep_until, file, line);
    const Future<Unit> second = calls.rpc_async("ps", &keep_until, file, line);
    first.wait();
    second.wait();
  });
  EXPECT_NE(told.find("level=warning worker=ps event=waits_long what=keep_until in="
                      "\"boost::fibers::mutex::lock(), held by keep_until\" for_seconds="),
            std::string::npos)
      << told;
}

}  // namespace
}  // namespace rehearsal::real
