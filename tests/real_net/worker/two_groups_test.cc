// Goal: who comes to a group by mistake is told what runs there, and the group works on. Method:
// whole workers over TCP; a group that works until the test lets it end, and others that come.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "tests/leased_port.h"
#include "tests/real_net/support/no_threads.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t add(int64_t a, int64_t b) { return a + b; }

WorkerOptions options_at(uint16_t port, uint32_t rank) {
  WorkerOptions made;
  made.placement = {
      .rank = rank, .world_size = 2, .rendezvous = "tcp://127.0.0.1:" + std::to_string(port)};
  made.environment = [](const std::string&) { return std::nullopt; };
  made.observe.log = "off";
  made.node.join_timeout = seconds(20);
  return made;
}

Program program_of(std::function<void(Worker&)> trainer, bool dynamic = false) {
  FunctionRegistry registry;
  registry.function("add", &add);
  Program program(registry);
  if (dynamic) program.dynamic();
  program.worker("ps").worker("trainer", std::move(trainer));
  return program;
}

// A group of two that works until it is told to end, and calls all the time.
class WorkingGroup {
 public:
  explicit WorkingGroup(bool dynamic = false)
      : program_(program_of([this](Worker& worker) { work(worker); }, dynamic)) {
    for (const uint32_t rank : {0u, 1u})
      threads_.emplace_back(
          [this, rank] { ends[rank] = run_worker(options_at(port, rank), program_); });
    while (calls_ == 0) std::this_thread::yield();
  }
  ~WorkingGroup() { end(); }
  void end() {
    ended_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  // Whether it works on: it has called since.
  bool works() {
    const int before = calls_;
    while (calls_ == before && failures_ == 0) std::this_thread::yield();
    return failures_ == 0;
  }

  const uint16_t port = leased_port();
  std::optional<Status> ends[2];

 private:
  void work(Worker& worker) {
    if (worker.name() != "trainer") return;
    worker.wait_for_worker("ps");
    for (; !ended_; worker.sleep(milliseconds(1))) {
      if (worker.rpc_sync("ps", &add, int64_t{2}, int64_t{3}) != 5) ++failures_;
      ++calls_;
    }
  }

  std::atomic<int> calls_{0}, failures_{0};
  std::atomic<bool> ended_{false};
  const Program program_;
  std::vector<std::thread> threads_;
};

void expect_words(const Status& status, const std::vector<std::string>& all) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::bad_arguments);
  for (const std::string& words : all)
    EXPECT_NE(status.error().text.find(words), std::string::npos)
        << "'" << words << "' is not in: " << status.error().text;
}

TEST(TwoGroups, ASecondLaunchWithoutARunIdIsRefusedAndTheFirstWorksOn) {
  // Goal: its ranks are no new lives of the first one's workers: these answer.
  WorkingGroup group;
  const Program again = program_of([](Worker&) {});
  expect_words(run_worker(options_at(group.port, 1), again),
               {"two workers were started as rank 1 ('trainer'): the first one runs at 127.0.0.1:",
                "a static group of 2 workers ('ps', 'trainer'), a run without an id, begun 20"});
  expect_words(run_worker(options_at(group.port, 0), again),
               {"rank 0 cannot serve the rendezvous: cannot listen on 127.0.0.1:",
                "there is a static group of 2 workers ('ps', 'trainer')"});
  EXPECT_TRUE(group.works());
  group.end();
  for (const auto& end : group.ends) EXPECT_TRUE(end->ok()) << to_string(end->error());
}

TEST(TwoGroups, AnotherProgramOrKindOfGroupIsRefusedAtOnceAndTheFirstWorksOn) {
  for (const bool dynamic : {false, true}) {
    WorkingGroup group(dynamic);
    const std::string here = dynamic ? "static" : "dynamic";
    const std::string there = dynamic ? "dynamic" : "static";
    expect_words(run_worker(options_at(group.port, 1), program_of([](Worker&) {}, !dynamic)),
                 {"the group is " + here + " here, " + there + " there",
                  "There is a " + there + " group of 2 workers"});
    WorkerOptions other = options_at(group.port, 1);
    other.node.seed = Seed{9};
    expect_words(run_worker(other, program_of([](Worker&) {}, dynamic)),
                 {"seed is '9' here, '0' there"});
    // It is told apart from a life that comes back in a dynamic group, too.
    expect_words(run_worker(options_at(group.port, 1), program_of([](Worker&) {}, dynamic)),
                 {"two workers were started as rank 1 ('trainer'): the first one runs at "});
    EXPECT_TRUE(group.works());
    group.end();
    for (const auto& end : group.ends) EXPECT_TRUE(end->ok()) << to_string(end->error());
  }
}

TEST(TwoGroups, AWorkerThatIsFoundUnfitBeforeItComesTellsTheOther) {
  // Method: rank 1 is to listen where somebody else does; rank 0 waits for it.
  const uint16_t port = leased_port();
  const Program program = program_of([](Worker&) {});
  std::optional<Status> waits;
  std::thread waiting([&] { waits = run_worker(options_at(port, 0), program); });
  const FileDescriptor taken = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  WorkerOptions unfit = options_at(port, 1);
  unfit.listen = local_address(taken);
  EXPECT_FALSE(run_worker(unfit, program).ok());
  waiting.join();
  ASSERT_FALSE(waits->ok());
  const std::string& text = waits->error().text;
  EXPECT_TRUE(text.starts_with("rank 1 ('trainer') refuses to join: cannot listen on")) << text;
}

TEST(TwoGroups, AProgramThatRefusesByItselfTellsTheOtherAndTorchrun) {
  const uint16_t port = leased_port();
  const Program program = program_of([](Worker&) {});
  std::optional<Status> waits;
  std::thread waiting([&] { waits = run_worker(options_at(port, 0), program); });
  refuse_to_join(options_at(port, 1), {.kind = ErrorKind::bad_arguments, .text = "no data here"});
  waiting.join();
  ASSERT_FALSE(waits->ok());
  EXPECT_EQ(waits->error().text, "rank 1 refuses to join: no data here");
}

TEST(TwoGroups, AProcessWithoutDescriptorsSaysSoAtOnce) {
  // Method: a process of its own, which may open no file more.
  const pid_t child = fork();
  if (child == 0) {
    const int lowest = dup(0);
    close(lowest);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(lowest);
    setrlimit(RLIMIT_NOFILE, &limit);
    const Status status = run_worker(options_at(1, 1), program_of([](Worker&) {}));
    const bool told = !status.ok() && status.error().kind == ErrorKind::overloaded &&
                      status.error().text.find("raise that with ulimit -n") != std::string::npos;
    std::_Exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(TwoGroups, AProcessWithTooFewDescriptorsForItsPeersSaysHowManyItNeeds) {
  // Method: a process of its own, which may open six files more: five for itself, two for its peer.
  const pid_t child = fork();
  if (child == 0) {
    const int lowest = dup(0);
    close(lowest);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    // Six numbers below the limit are free.
    limit.rlim_cur = static_cast<rlim_t>(lowest + 6);
    for (int fd = lowest; fd < lowest + 6; ++fd) close(fd);
    setrlimit(RLIMIT_NOFILE, &limit);
    const Status status = run_worker(options_at(1, 1), program_of([](Worker&) {}));
    const bool told = !status.ok() && status.error().kind == ErrorKind::overloaded &&
                      status.error().text.find(
                          "this worker needs 7 at the least beside those that are open, "
                          "and can have 6") != std::string::npos;
    std::_Exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(TwoGroups, AWorkerThatHasNoMemoryLeftTellsTheOther) {
  // Method: rank 1 finds none while it prepares; rank 0 waits for it.
  const uint16_t port = leased_port();
  const Program program = program_of([](Worker&) {});
  std::optional<Status> waits;
  std::thread waiting([&] { waits = run_worker(options_at(port, 0), program); });
  WorkerOptions without = options_at(port, 1);
  without.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "REHEARSAL_STRICT_LEAKS") throw std::bad_alloc();
    return std::nullopt;
  };
  const Status status = run_worker(without, program);
  waiting.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::overloaded);
  EXPECT_TRUE(status.error().text.starts_with("no memory is left")) << status.error().text;
  ASSERT_FALSE(waits->ok());
  EXPECT_TRUE(waits->error().text.starts_with("rank 1 ('trainer') refuses to join: no memory is"))
      << waits->error().text;
}

TEST(TwoGroups, AWorkerThatCanStartNoThreadSaysSo) {
  // Method: a process of its own, as others of this one start threads.
  const pid_t child = fork();
  if (child == 0) {
    const NoThreads none;
    const Status status = run_worker(options_at(1, 1), program_of([](Worker&) {}));
    const bool told = !status.ok() && status.error().kind == ErrorKind::overloaded &&
                      status.error().text.starts_with("no thread can be started: ") &&
                      status.error().text.find("ulimit -u") != std::string::npos;
    std::_Exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace rehearsal::real
