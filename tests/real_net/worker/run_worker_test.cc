#include "real_net/run_worker.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/api/worker.h"
#include "real_net/tcp/socket.h"
#include "tests/real_net/support/fault_proxy.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;

int64_t add(int64_t a, int64_t b) { return a + b; }

int64_t never_end(int64_t) {
  for (;;) sleep(1000);
}

uint16_t free_port() {
  return local_address(listen_on({.host = "127.0.0.1", .port = 0}).or_throw()).port;
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add).function("never_end", &never_end);
  return registry;
}

Program adding_program() {
  Program program(functions());
  program.worker("ps", [](Worker&) {}).worker("trainer", [](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("ps", &add, int64_t{2}, int64_t{3}), 5);
  });
  return program;
}

WorkerOptions options(uint16_t port, uint32_t rank) {
  WorkerOptions made;
  made.placement = {
      .rank = rank, .world_size = 2, .rendezvous = "tcp://127.0.0.1:" + std::to_string(port)};
  made.environment = [](const std::string&) { return std::nullopt; };
  return made;
}

TEST(RunWorker, TwoWorkersMeetWorkAndLeave) {
  const Program program = adding_program();
  const uint16_t port = free_port();
  std::optional<Status> ps;
  std::thread other([&] { ps = run_worker(options(port, 0), program); });
  const Status trainer = run_worker(options(port, 1), program);
  other.join();
  EXPECT_TRUE(trainer.ok()) << trainer.error().text;
  EXPECT_TRUE(ps->ok()) << ps->error().text;
}

TEST(RunWorker, TheOthersReachAWorkerWhereItSaysThatItIs) {
  // Goal: what is advertised is used, and nothing else. Method: a proxy before each worker; nobody
  // knows where they listen but the proxies. The one that connects is the lower rank.
  const Program program = adding_program();
  const uint16_t port = free_port();
  std::array<FaultProxy, 2> proxies;
  std::array<std::optional<Status>, 2> ends;
  std::vector<std::thread> workers;
  for (const uint32_t rank : {0u, 1u}) {
    WorkerOptions made = options(port, rank);
    made.listen = Address{.host = "127.0.0.1", .port = free_port()};
    made.advertise = Address{.host = "localhost", .port = proxies[rank].port()};
    proxies[rank].set_target(made.listen->port);
    workers.emplace_back([&, made, rank] { ends[rank] = run_worker(made, program); });
  }
  for (std::thread& worker : workers) worker.join();
  for (const auto& end : ends) EXPECT_TRUE(end->ok()) << end->error().text;
  EXPECT_GT(proxies[1].forwarded_bytes(), 0u);
}

TEST(RunWorker, WhoListensEverywhereIsReachedAtThisMachine) {
  // Goal: what is published is the address of a machine. Method: all listen at any; one of them
  // looks into the store.
  const std::filesystem::path store =
      std::filesystem::temp_directory_path() / ("everywhere_" + std::to_string(getpid()));
  std::string published;
  Program program(functions());
  program.worker("ps").worker("trainer", [&](Worker&) {
    std::ostringstream content;
    content << std::ifstream(store).rdbuf();
    published = content.str();
  });
  std::array<std::optional<Status>, 2> ends;
  std::vector<std::thread> workers;
  for (const uint32_t rank : {0u, 1u}) {
    WorkerOptions made = options(0, rank);
    made.placement.rendezvous = "file://" + store.string();
    made.listen = Address{.host = "0.0.0.0", .port = 0};
    workers.emplace_back([&, made, rank] { ends[rank] = run_worker(made, program); });
  }
  for (std::thread& worker : workers) worker.join();
  std::filesystem::remove(store);
  for (const auto& end : ends) EXPECT_TRUE(end->ok()) << end->error().text;
  EXPECT_NE(published.find("127.0.0.1"), std::string::npos) << published;
  EXPECT_EQ(published.find("0.0.0.0"), std::string::npos) << published;
}

TEST(RunWorker, AnAddressThatCannotBeListenedOnIsToldBeforeAnybodyIsWaitedFor) {
  const FileDescriptor taken = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  WorkerOptions made = options(free_port(), 1);  // where nobody serves
  made.listen = local_address(taken);
  const Status status = run_worker(made, adding_program());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().text.find("in use"), std::string::npos) << status.error().text;
}

TEST(RunWorker, WrongUseIsOneClearError) {
  const Program program = adding_program();
  WorkerOptions made = options(free_port(), 0);
  made.placement.world_size = 3;
  Status status = run_worker(made, program);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().text, "the program has 2 workers, but the world size (flags) is 3");
  made = options(free_port(), 2);
  made.placement.world_size.reset();
  status = run_worker(made, program);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().text, "rank 2 (flags) is not one of the program's 2 workers");
}

TEST(RunWorker, ItsSpansMetricsAndLogAreWhereTheOptionsSay) {
  // Goal: options and environment reach the observers. Method: one worker is given the options, the
  // other one the variables; their spans are merged.
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("spans_" + std::to_string(getpid()));
  const Program program = adding_program();
  const uint16_t port = free_port();
  const uint16_t metrics = free_port();
  WorkerOptions first = options(port, 0);
  first.observe = {.metrics = std::to_string(metrics), .spans = folder.string(), .log = "off"};
  WorkerOptions second = options(port, 1);
  second.environment = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "REHEARSAL_SPANS") return folder.string();
    if (name == "REHEARSAL_METRICS") return "127.0.0.1:0";
    if (name == "REHEARSAL_LOG") return "info";
    return std::nullopt;
  };
  testing::internal::CaptureStderr();
  std::optional<Status> ps;
  std::thread other([&] { ps = run_worker(first, program); });
  const Status trainer = run_worker(second, program);
  other.join();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(trainer.ok()) << trainer.error().text;
  EXPECT_TRUE(ps->ok()) << ps->error().text;
  EXPECT_NE(told.find("rehearsal: metrics are at http://127.0.0.1:"), std::string::npos) << told;
  EXPECT_NE(told.find("Z level=info worker=trainer event=link_up peer=ps\n"), std::string::npos)
      << told;
  EXPECT_EQ(told.find("worker=ps"), std::string::npos) << told;
  std::vector<observe::SpanFile> files;
  for (const char* name : {"ps", "trainer"}) {
    std::ostringstream content;
    content << std::ifstream(folder / (std::string(name) + ".spans.json")).rdbuf();
    files.push_back(observe::read_spans(content.str()).or_throw());
  }
  std::filesystem::remove_all(folder);
  const observe::SpanFile all = observe::merge(files).or_throw();
  ASSERT_EQ(all.spans.size(), 2u);
  EXPECT_EQ(observe::span_name(all.spans[0], all.names), "add");
  EXPECT_EQ(observe::span_name(all.spans[1], all.names), "rpc_sync#add(trainer -> ps)");
  EXPECT_EQ(all.spans[0].call, all.spans[1].call);
  EXPECT_GE(all.spans[0].begin, all.spans[1].begin);
  EXPECT_LE(all.spans[0].end, all.spans[1].end);
}

TEST(RunWorker, WrongObserversAreOneClearError) {
  // Goal: a typing mistake is told before anything starts. Method: a level and a port that are
  // none.
  const Program program = adding_program();
  WorkerOptions made = options(free_port(), 0);
  made.observe.log = "loud";
  EXPECT_EQ(run_worker(made, program).error().text,
            "log level 'loud': type debug, info, warn, error or off");
  made.observe = {.metrics = "localhost"};
  EXPECT_EQ(run_worker(made, program).error().text,
            "metrics at 'localhost': type PORT or HOST:PORT, for example 9464");
}

TEST(RunWorker, AMetricsAddressIsAPortOrAHostWithOne) {
  // Goal: what can be typed. Method: each form, and what is none.
  EXPECT_EQ(parse_metrics_address("9464"), (Address{.host = "127.0.0.1", .port = 9464}));
  EXPECT_EQ(parse_metrics_address("0.0.0.0:0"), (Address{.host = "0.0.0.0", .port = 0}));
  EXPECT_EQ(parse_metrics_address("[::1]:80"), (Address{.host = "::1", .port = 80}));
  for (const char* text : {"", ":", ":80", "host:", "65536", "-1", "80x", "::1:80", "[]:80"})
    EXPECT_FALSE(parse_metrics_address(text).has_value()) << text;
}

TEST(RunWorker, AFailureIsWrittenToTorchrunsErrorFile) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("error_file_" + std::to_string(getpid()));
  WorkerOptions made = options(free_port(), 1);
  made.environment = [&path](const std::string& name) -> std::optional<std::string> {
    if (name == "TORCHELASTIC_ERROR_FILE") return path;
    return std::nullopt;
  };
  made.node.join_timeout = milliseconds(200);
  const Program program = adding_program();
  const Status status = run_worker(made, program);
  ASSERT_FALSE(status.ok());
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_NE(content.str().find("nobody serves the rendezvous"), std::string::npos) << content.str();
}

// Runs `body` in a process of its own and gives its exit status.
int exit_status_of(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    std::_Exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(RunWorker, AFunctionThatNeverEndsDoesNotKeepTheProcess) {
  // Goal: the process is left by _Exit(1), in bounded time. Method: real processes.
  Program program(functions());
  program.worker("ps", [](Worker&) {}).worker("trainer", [](Worker& worker) {
    (void)worker.rpc_async("ps", &never_end, int64_t{0});
  });
  const uint16_t port = free_port();
  WorkerOptions made = options(port, 0);
  made.node.shutdown_timeout = milliseconds(500);
  WorkerOptions trainer = options(port, 1);
  trainer.node.shutdown_timeout = milliseconds(500);
  std::thread other([&] { (void)exit_status_of([&] { (void)run_worker(trainer, program); }); });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(exit_status_of([&] { (void)run_worker(made, program); }), 1);
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(RunWorker, APeerThatIsKilledIsNamedInTime) {
  // Goal: a crash ends the others with an error that names the dead. Method: SIGKILL in a call.
  Program program(functions());
  program.worker("ps", [](Worker&) {}).worker("trainer", [](Worker& worker) {
    worker.rpc_sync("ps", &never_end, int64_t{0});
  });
  const uint16_t port = free_port();
  const pid_t child = fork();
  if (child == 0) {
    (void)run_worker(options(port, 0), program);
    std::_Exit(0);
  }
  std::thread killer([child] {
    std::this_thread::sleep_for(milliseconds(1'500));
    kill(child, SIGKILL);
  });
  WorkerOptions made = options(port, 1);
  made.node.peer_timeout = milliseconds(500);
  made.node.heartbeat = milliseconds(100);
  made.node.shutdown_timeout = milliseconds(1'000);
  const auto start = std::chrono::steady_clock::now();
  const Status status = run_worker(made, program);
  killer.join();
  int ignored = 0;
  waitpid(child, &ignored, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(to_string(status.error()).find("ps"), std::string::npos) << to_string(status.error());
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1'500 + 500 + 2'000));
}

}  // namespace
}  // namespace rehearsal::real
