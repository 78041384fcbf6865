// Goal: a worker that is killed is noticed because its port refuses, long before its silence would
// tell. Method: real processes; the silence that is allowed is longer than any test may last.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "tests/leased_port.h"
#include "tests/real_net/support/nursery.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t own_process() { return getpid(); }

int64_t never_end() {
  for (;;) sleep(1000);
}

std::atomic<bool> waiting{false};
bool is_waiting() { return waiting; }

// Taken by a function, as long as somebody waits for it.
class Lock {
 public:
  Lock() = default;
  void take() { ++taken_; }
  void give() { --taken_; }
  int64_t taken() const { return taken_; }

 private:
  int64_t taken_ = 0;
};
int64_t hold(CallContext& context, const RRef<Lock>& lock) {
  lock.rpc_sync(&Lock::take);
  while (!context.cancelled()) context.sleep(milliseconds(5));
  const Shield shield = context.shielded(seconds(30));
  lock.rpc_sync(&Lock::give);
  return 0;
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("hold", &hold);
  registry.type<Lock>("Lock")
      .constructor<>()
      .method("take", &Lock::take)
      .method("give", &Lock::give)
      .method("taken", &Lock::taken);
  registry.function("own_process", &own_process).function("never_end", &never_end);
  registry.function("is_waiting", &is_waiting);
  return registry;
}

class Killed : public testing::Test {
 protected:
  [[nodiscard]] WorkerOptions options(uint32_t rank, const std::string& rendezvous) const {
    WorkerOptions made;
    made.placement = {.rank = rank, .world_size = {}, .rendezvous = rendezvous};
    made.environment = [](const std::string&) { return std::nullopt; };
    // Two callers may each hold a thread of the victim for good, before the quick call of either.
    made.num_worker_threads = 4;
    made.observe.log = "off";
    made.node.heartbeat = milliseconds(500);
    made.node.peer_timeout = hours(1);
    made.node.join_timeout = seconds(60);
    made.node.shutdown_timeout = seconds(60);
    return made;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("store");
};

// The text of the error of a call that is under way when its callee is killed.
std::string failure_of_call_to(Worker& worker, const std::string& name,
                               const std::function<void()>& kill) {
  const Future<int64_t> under_way =
      worker.with_timeout(Timeout::never()).rpc_async(name, &never_end);
  EXPECT_GT(worker.rpc_sync(name, &own_process), 0);
  kill();
  try {
    (void)under_way.wait();
    return "it ended";
  } catch (const RpcError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::peer_lost);
    EXPECT_EQ(error.error().worker, name);
    return error.error().text;
  }
}

constexpr const char* kRefused = "' has ended: its port refuses connections (";

TEST_F(Killed, AKilledWorkerIsNamedByWhoWaitsForItWhoeverConnects) {
  // The victim has the higher id than one and the lower than the other.
  Program program(functions());
  Nursery* nursery = nullptr;
  pid_t victim = -1;
  std::string why;
  program.worker("low", [&](Worker& worker) {
    why = failure_of_call_to(worker, "victim", [&] {
      while (!worker.rpc_sync("high", &is_waiting)) worker.sleep(milliseconds(5));
      EXPECT_EQ(nursery->kill(victim), -SIGKILL);
    });
  });
  program.worker("victim").worker("high", [](Worker& worker) {
    const std::string seen = failure_of_call_to(worker, "victim", [] { waiting = true; });
    if (seen.find(kRefused) == std::string::npos) throw std::runtime_error("seen: " + seen);
    throw std::runtime_error("as it should be");
  });
  const std::string rendezvous = "file://" + file_;
  Nursery children([&](int rank) {
    const Status status = run_worker(options(static_cast<uint32_t>(rank), rendezvous), program);
    return !status.ok() && status.error().text.find("as it should be") != std::string::npos ? 7 : 1;
  });
  nursery = &children;
  victim = children.start(1);
  const pid_t high = children.start(2);
  (void)run_worker(options(0, rendezvous), program);
  EXPECT_NE(why.find(std::string("worker 'victim") + kRefused), std::string::npos) << why;
  EXPECT_EQ(children.wait(high), 7);
}

TEST_F(Killed, RankZeroIsNamedToo) {
  // It serves the store; who is left says that it is gone, and not that a store is.
  Program program(functions());
  Nursery* nursery = nullptr;
  pid_t first = -1;
  std::string why;
  program.worker("first").worker("second", [&](Worker& worker) {
    why = failure_of_call_to(worker, "first", [&] { EXPECT_EQ(nursery->kill(first), -SIGKILL); });
  });
  const std::string rendezvous = "tcp://127.0.0.1:" + std::to_string(leased_port());
  Nursery children([&](int rank) {
    return run_worker(options(static_cast<uint32_t>(rank), rendezvous), program).ok() ? 0 : 1;
  });
  nursery = &children;
  first = children.start(0);
  (void)run_worker(options(1, rendezvous), program);
  EXPECT_NE(why.find(std::string("worker 'first") + kRefused), std::string::npos) << why;
}

TEST_F(Killed, ARankZeroThatComesBackWithoutItsStoreSaysForWhomItWaits) {
  // Goal: its store died with it, so it does not find the others: it names them and does not wait
  // in silence. They meet again when all come. Method: as above; then rank 0 alone, then both.
  Program program(functions());
  Program quiet(functions());
  Nursery* nursery = nullptr;
  pid_t first = -1;
  program.worker("first").worker("second", [&](Worker& worker) {
    (void)failure_of_call_to(worker, "first", [&] { EXPECT_EQ(nursery->kill(first), -SIGKILL); });
  });
  quiet.worker("first").worker("second");
  const std::string rendezvous = "tcp://127.0.0.1:" + std::to_string(leased_port());
  constexpr int kAlone = 10;
  constexpr int kBoth = 20;
  Nursery children([&](int number) {
    WorkerOptions made = options(static_cast<uint32_t>(number % 10), rendezvous);
    if (number < kAlone) return run_worker(made, program).ok() ? 0 : 1;
    if (number >= kBoth) return run_worker(made, quiet).ok() ? 0 : 1;
    made.node.join_timeout = seconds(3);
    const Status status = run_worker(made, quiet);
    return !status.ok() && status.error().text.find("rank 1 ('second')") != std::string::npos ? 7
                                                                                              : 1;
  });
  nursery = &children;
  first = children.start(0);
  EXPECT_FALSE(run_worker(options(1, rendezvous), program).ok());
  EXPECT_EQ(children.wait(children.start(kAlone)), 7);
  const pid_t both[] = {children.start(kBoth), children.start(kBoth + 1)};
  for (const pid_t child : both) EXPECT_EQ(children.wait(child), 0);
}

TEST_F(Killed, WhatAFunctionHasTakenForAKilledCallerItGivesBack) {
  // Goal: a lock at a third worker is free again, and the function's worker serves on. Method: the
  // caller is killed while the function holds it. In the end the lock's worker is killed, too: it
  // does not miss the caller for an hour, and the shutdown would wait for that.
  Program program(functions());
  Nursery* nursery = nullptr;
  pid_t caller = -1;
  pid_t keeper = -1;
  bool is_free = false;
  program.worker("server", [&](Worker& worker) {
    const auto await_taken = [](const RRef<Lock>& lock, int64_t taken) {
      const auto limit = std::chrono::steady_clock::now() + seconds(30);
      while (lock.rpc_sync(&Lock::taken) != taken && std::chrono::steady_clock::now() < limit) {
      }
      return lock.rpc_sync(&Lock::taken) == taken;
    };
    const RRef<Lock> lock = worker.remote<Lock>("keeper");
    worker.publish("lock", lock);
    EXPECT_TRUE(await_taken(lock, 1));
    EXPECT_EQ(nursery->kill(caller), -SIGKILL);
    is_free = await_taken(lock, 0);
    EXPECT_GT(worker.rpc_sync("server", &own_process), 0);
    worker.unpublish("lock");
    EXPECT_EQ(nursery->kill(keeper), -SIGKILL);
    EXPECT_THROW(lock.rpc_sync(&Lock::taken), RpcError);
  });
  program.worker("caller", [](Worker& worker) {
    const RRef<Lock> lock = worker.lookup<Lock>("server", "lock");
    worker.with_timeout(Timeout::never()).rpc_sync("server", &hold, lock);
  });
  program.worker("keeper");
  const std::string rendezvous = "file://" + file_;
  Nursery children([&](int rank) {
    return run_worker(options(static_cast<uint32_t>(rank), rendezvous), program).ok() ? 0 : 1;
  });
  nursery = &children;
  caller = children.start(1);
  keeper = children.start(2);
  (void)run_worker(options(0, rendezvous), program);
  EXPECT_TRUE(is_free);
}

}  // namespace
}  // namespace rehearsal::real
