// Goal: a worker that is killed and started again works on in its group, over TCP. Method: real
// processes, of which one is killed in the middle of a call; the others hold references to it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "tests/real_net/support/nursery.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t process_id() { return getpid(); }

int64_t sleep_on() {
  for (;;) sleep(1000);
}

int64_t process_id_of(CallContext& context, const std::string& worker) {
  return context.rpc_sync(worker, &process_id);
}

std::atomic<bool> dismissed{false};
int64_t dismiss() {
  dismissed = true;
  return process_id();
}

FunctionRegistry comeback_functions() {
  FunctionRegistry registry;
  registry.function("process_id", &process_id).function("never_end", &sleep_on);
  registry.function("process_id_of", &process_id_of).function("dismiss", &dismiss);
  return registry;
}

bool is_loss(const RpcError& error) {
  return error.kind() == ErrorKind::peer_lost || error.kind() == ErrorKind::fenced;
}

// Why the call failed; nothing if it did not.
template <class Call>
std::string failure_of(Call call) {
  try {
    (void)call();
    return "";
  } catch (const RpcError& error) {
    EXPECT_TRUE(is_loss(error)) << to_string(error.error());
    return to_string(error.error());
  }
}

// Another process than `former` that is this worker, as soon as there is one; `former` if none
// comes.
int64_t successor(Worker& worker, const std::string& name, int64_t former,
                  const std::function<int64_t()>& ask) {
  const Instant limit = worker.now() + seconds(60);
  for (; worker.now() < limit; worker.sleep(milliseconds(20))) {
    int64_t found = former;
    const std::string why = failure_of([&] { return found = ask(); });
    if (why.empty() && found != former) return found;
    if (why.empty()) continue;
    EXPECT_NE(why.find(name), std::string::npos) << why;
  }
  return former;
}

class Comeback : public testing::Test {
 protected:
  [[nodiscard]] WorkerOptions options(uint32_t rank) const {
    WorkerOptions made;
    made.placement = {.rank = rank, .world_size = {}, .rendezvous = "file://" + file_};
    made.environment = [](const std::string&) { return std::nullopt; };
    made.observe.log = "off";
    made.node.heartbeat = milliseconds(200);
    made.node.peer_timeout = seconds(10);
    made.node.join_timeout = seconds(60);
    made.node.shutdown_timeout = seconds(60);
    return made;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("store");
};

TEST_F(Comeback, AKilledWorkerThatIsStartedAgainIsItsNextLife) {
  Program program(comeback_functions());
  Nursery* nursery = nullptr;
  pid_t back = -1;
  int64_t last = 0;
  program.worker("caller", [&](Worker& worker) {
    for (int round = 0; round < 3; ++round) {
      const int64_t before = worker.rpc_sync("back", &process_id);
      EXPECT_EQ(before, back);
      const RRef<int64_t> reference = worker.remote("back", &process_id);
      EXPECT_EQ(reference.to_here(), before);
      const Future<int64_t> under_way = worker.rpc_async("back", &sleep_on);
      EXPECT_EQ(nursery->kill(back), -SIGKILL);
      back = nursery->start(2);
      EXPECT_NE(failure_of([&] { return under_way.wait(); }), "");
      last =
          successor(worker, "back", before, [&] { return worker.rpc_sync("back", &process_id); });
      EXPECT_EQ(last, back);
      // The values that its former life owned are gone, although the worker is there.
      EXPECT_NE(failure_of([&] { return reference.to_here(); }), "");
      EXPECT_EQ(worker.remote("back", &process_id).to_here(), last);
      EXPECT_EQ(successor(worker, "back", before,
                          [&] { return worker.rpc_sync("steady", &process_id_of, "back"); }),
                last);
    }
  });
  program.worker("steady").worker("back");
  Nursery children([&](int rank) {
    return run_worker(options(static_cast<uint32_t>(rank)), program).ok() ? 0 : 1;
  });
  nursery = &children;
  const pid_t steady = children.start(1);
  back = children.start(2);
  const Status status = run_worker(options(0), program);
  // All have shut down together, with none of them missing.
  EXPECT_TRUE(status.ok()) << status.error().text;
  EXPECT_EQ(children.wait(steady), 0);
  EXPECT_EQ(children.wait(back), 0);
  EXPECT_EQ(last, back);
}

TEST_F(Comeback, AllWorkersOfAGroupThatFailedMeetInItAgain) {
  // Method: all are killed at work; when they start again, each finds the others' former addresses.
  int at_work[2];
  ASSERT_EQ(pipe(at_work), 0);
  Program program(comeback_functions());
  program.worker("caller", [&at_work](Worker& worker) {
    EXPECT_GT(worker.rpc_sync("steady", &process_id_of, "back"), 0);
    EXPECT_EQ(write(at_work[1], "!", 1), 1);
    (void)worker.rpc_sync("back", &sleep_on);
  });
  program.worker("steady").worker("back");
  Program second(comeback_functions());
  second.worker("caller", [](Worker& worker) {
    EXPECT_GT(worker.rpc_sync("steady", &process_id_of, "back"), 0);
  });
  second.worker("steady").worker("back");
  Nursery children([&](int number) {
    const Program& run = number < 10 ? program : second;
    return run_worker(options(static_cast<uint32_t>(number % 10)), run).ok() ? 0 : 1;
  });
  std::vector<pid_t> first;
  for (const int rank : {0, 1, 2}) first.push_back(children.start(rank));
  char mark = 0;
  ASSERT_EQ(read(at_work[0], &mark, 1), 1);
  for (const pid_t child : first) EXPECT_EQ(children.kill(child), -SIGKILL);
  std::vector<pid_t> again;
  for (const int rank : {0, 1, 2}) again.push_back(children.start(10 + rank));
  for (const pid_t child : again) EXPECT_EQ(children.wait(child), 0);
  for (const int end : at_work) close(end);
}

TEST_F(Comeback, GuestsOfADynamicGroupComeLeaveCrashAndComeAgain) {
  // Method: one process stays; it starts the others when it likes, and each is called by it and by
  // another one.
  Nursery* nursery = nullptr;
  std::map<std::string, pid_t> guests;
  Program program(comeback_functions());
  program.dynamic();
  program.worker("host", [&](Worker& worker) {
    const auto come = [&](const std::string& name) {
      guests[name] = nursery->start(name == "server" ? 1 : 2);
    };
    const auto find = [&](const std::string& name, pid_t former) {
      return successor(worker, name, former, [&] { return worker.rpc_sync(name, &process_id); });
    };
    EXPECT_NE(failure_of([&] { return worker.rpc_sync("server", &process_id); }), "");
    come("server");
    worker.wait_for_worker("server");
    EXPECT_EQ(worker.rpc_sync("server", &process_id), guests["server"]);
    for (int visit = 0; visit < 3; ++visit) {
      come("guest");
      worker.wait_for_worker("guest");
      EXPECT_EQ(worker.rpc_sync("guest", &process_id_of, "server"), guests["server"]);
      EXPECT_EQ(worker.rpc_sync("server", &process_id_of, "guest"), guests["guest"]);
      const pid_t former = guests["server"];
      EXPECT_EQ(nursery->kill(former), -SIGKILL);
      come("server");
      EXPECT_EQ(find("server", former), guests["server"]);
      EXPECT_EQ(successor(worker, "server", former,
                          [&] { return worker.rpc_sync("guest", &process_id_of, "server"); }),
                guests["server"]);
      EXPECT_EQ(worker.rpc_sync("guest", &dismiss), guests["guest"]);
      EXPECT_EQ(nursery->wait(guests["guest"]), 0);
      EXPECT_NE(failure_of([&] { return worker.rpc_sync("guest", &process_id); }), "");
    }
  });
  program.worker("server").worker("guest", [](Worker& worker) {
    while (!dismissed) worker.sleep(milliseconds(5));
  });
  Nursery children([&](int rank) {
    return run_worker(options(static_cast<uint32_t>(rank)), program).ok() ? 0 : 1;
  });
  nursery = &children;
  const Status status = run_worker(options(0), program);
  EXPECT_TRUE(status.ok()) << to_string(status.error());
  EXPECT_EQ(children.wait(guests["server"]), 0);
}

}  // namespace
}  // namespace rehearsal::real
