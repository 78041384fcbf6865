#include "real_net/run_worker.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "core/api/worker.h"
#include "real_net/tcp/socket.h"
#include "tests/leased_port.h"
#include "tests/real_net/support/certificates.h"
#include "tests/real_net/support/fault_proxy.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t sum_of_two(int64_t a, int64_t b) { return a + b; }

// Says into a pipe that it has begun.
int64_t never_end(int64_t pipe_end) {
  if (pipe_end > 0 && write(static_cast<int>(pipe_end), "!", 1) != 1) std::abort();
  for (;;) sleep(1000);
}

int64_t refuse(int64_t) { throw std::runtime_error("not now"); }

FunctionRegistry run_functions() {
  FunctionRegistry registry;
  registry.function("add", &sum_of_two)
      .function("never_end", &never_end)
      .function("refuse", &refuse);
  return registry;
}

Program adding_program() {
  Program program(run_functions());
  program.worker("ps", [](Worker&) {}).worker("trainer", [](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("ps", &sum_of_two, int64_t{2}, int64_t{3}), 5);
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
  const uint16_t port = leased_port();
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
  const uint16_t port = leased_port();
  std::array<FaultProxy, 2> proxies;
  std::array<std::optional<Status>, 2> ends;
  std::vector<std::thread> workers;
  for (const uint32_t rank : {0u, 1u}) {
    WorkerOptions made = options(port, rank);
    made.listen = Address{.host = "127.0.0.1", .port = leased_port()};
    made.advertise = Address{.host = "localhost", .port = proxies[rank].port()};
    proxies[rank].set_target(made.listen->port);
    workers.emplace_back([&, made, rank] { ends[rank] = run_worker(made, program); });
  }
  for (std::thread& worker : workers) worker.join();
  for (const auto& end : ends) EXPECT_TRUE(end->ok()) << end->error().text;
  EXPECT_GT(proxies[1].forwarded_bytes(), 0u);
}

// The outcomes of both workers of a program, which are given these proofs.
std::array<Status, 2> run_proving(const std::array<std::string, 2>& auth) {
  const Program program = adding_program();
  const uint16_t port = leased_port();
  std::array<Status, 2> ends{Unit{}, Unit{}};
  std::vector<std::thread> workers;
  for (const uint32_t rank : {0u, 1u}) {
    WorkerOptions made = options(port, rank);
    made.auth = auth[rank];
    made.environment = [](const std::string& name) -> std::optional<std::string> {
      if (name == "OURS") return "the secret of this group";
      if (name == "OTHER") return "the secret of other people";
      return std::nullopt;
    };
    made.node.join_timeout = std::chrono::seconds(2);
    workers.emplace_back([&, made, rank] { ends[rank] = run_worker(made, program); });
  }
  for (std::thread& worker : workers) worker.join();
  return ends;
}

TEST(RunWorker, WorkersWithOneSecretMeetAndWork) {
  for (const Status& end : run_proving({"secret:env=OURS", "secret:env=OURS"}))
    EXPECT_TRUE(end.ok()) << end.error().text;
}

TEST(RunWorker, CertificatesWithTheirNamesLetWorkersMeetAndWork) {
  TestAuthority authority;
  const auto proof = [](const CertificateFiles& files) {
    return "certificates:cert=" + files.chain + ",key=" + files.key + ",ca=" + files.authorities;
  };
  const std::string ps = proof(authority.issue("ps")), trainer = proof(authority.issue("trainer"));
  for (const Status& end : run_proving({ps, trainer})) EXPECT_TRUE(end.ok()) << end.error().text;
  for (const Status& end : run_proving({trainer, ps}))
    EXPECT_FALSE(end.ok()) << "each has the other's certificate";
}

TEST(RunWorker, AWorkerWithAnotherSecretOrNoneIsTold) {
  const std::pair<std::string, std::string> refused[] = {
      {"secret:env=OTHER", "has another secret than this worker"},
      {"", "have a secret, and this one has none"}};
  for (const auto& [auth, why] : refused) {
    const std::array<Status, 2> ends = run_proving({"secret:env=OURS", auth});
    ASSERT_FALSE(ends[1].ok());
    EXPECT_EQ(ends[1].error().kind, ErrorKind::bad_arguments);
    EXPECT_NE(ends[1].error().text.find(why), std::string::npos) << ends[1].error().text;
    EXPECT_FALSE(ends[0].ok()) << "it has waited in vain";
  }
}

TEST(RunWorker, NobodyIsOpenToStrangersWhoHasNotSaidSo) {
  const Program program = adding_program();
  for (const std::string host : {"0.0.0.0", "::"}) {
    WorkerOptions made = options(leased_port(), 0);
    made.listen = Address{.host = host, .port = 0};
    made.node.join_timeout = std::chrono::milliseconds(200);
    const Status status = run_worker(made, program);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().text.find("or say --auth none"), std::string::npos)
        << status.error().text;
  }
}

TEST(RunWorker, WhoSaysThatOthersReachItNeedsAProof) {
  // Goal: the documented way of a forwarded port is no way in for strangers. Method: it listens at
  // loopback, and advertises what others can reach.
  const Program program = adding_program();
  WorkerOptions made = options(leased_port(), 0);
  made.listen = Address{.host = "127.0.0.1", .port = 0};
  made.advertise = Address{.host = "10.0.0.7", .port = 7000};
  made.node.join_timeout = std::chrono::milliseconds(200);
  const Status status = run_worker(made, program);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::bad_arguments);
  EXPECT_NE(status.error().text.find("can reach this worker, at 10.0.0.7:7000"), std::string::npos)
      << status.error().text;
}

TEST(RunWorker, WhoListensEverywhereIsReachedAtThisMachine) {
  // Goal: what is published is the address of a machine. Method: all listen at any; one of them
  // looks into the store.
  const TemporaryFolder folder;
  const std::string store = folder.file("store");
  std::string published;
  Program program(run_functions());
  program.worker("ps").worker("trainer", [&](Worker&) { published = read_whole_file(store); });
  std::array<std::optional<Status>, 2> ends;
  std::vector<std::thread> workers;
  for (const uint32_t rank : {0u, 1u}) {
    WorkerOptions made = options(0, rank);
    made.placement.rendezvous = "file://" + store;
    made.listen = Address{.host = "0.0.0.0", .port = 0};
    made.auth = "none";
    workers.emplace_back([&, made, rank] { ends[rank] = run_worker(made, program); });
  }
  for (std::thread& worker : workers) worker.join();
  for (const auto& end : ends) EXPECT_TRUE(end->ok()) << end->error().text;
  EXPECT_NE(published.find("127.0.0.1"), std::string::npos) << published;
  EXPECT_EQ(published.find("0.0.0.0"), std::string::npos) << published;
}

TEST(RunWorker, AnAddressThatCannotBeListenedOnIsToldBeforeAnybodyIsWaitedFor) {
  const FileDescriptor taken = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  WorkerOptions made = options(leased_port(), 1);  // where nobody serves
  made.node.join_timeout = milliseconds(200);
  made.listen = local_address(taken);
  const Status status = run_worker(made, adding_program());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().text.find("in use"), std::string::npos) << status.error().text;
}

TEST(RunWorker, AVariableMakesReferencesThatAreLeftAFailure) {
  std::optional<RRef<int64_t>> kept;
  Program program{run_functions()};
  program.worker("solo", [&](Worker& worker) { kept = worker.rref<int64_t>(5); });
  const auto ended = [&](const std::string& value) {
    WorkerOptions made = options(leased_port(), 0);
    made.placement.world_size = 1;
    made.environment = [&value](const std::string& name) -> std::optional<std::string> {
      if (name == "REHEARSAL_STRICT_LEAKS" && !value.empty()) return value;
      return std::nullopt;
    };
    const Status status = run_worker(made, program);
    kept.reset();
    return status;
  };
  EXPECT_TRUE(ended("").ok());
  EXPECT_TRUE(ended("0").ok());
  EXPECT_EQ(ended("1").error().kind, ErrorKind::rref_leaked);
  EXPECT_EQ(ended("yes").error().text,
            "REHEARSAL_STRICT_LEAKS=yes: type 1 (references that are left at the shutdown are a "
            "failure) or 0 (a warning)");
}

TEST(RunWorker, AVariableOrAnOptionMakesErrorsSayWhereTheirExceptionsPassed) {
  // Goal: on request, by either, and not else. Method: a main that calls a function that throws.
  Program program{run_functions()};
  program.worker("solo", [](Worker& worker) { worker.rpc_sync("solo", &refuse, int64_t{1}); });
  const auto error = [&](const std::string& variable, bool option) {
    WorkerOptions made = options(leased_port(), 0);
    made.placement.world_size = 1;
    made.observe.log = "off";
    made.node.exception_traces = option;
    made.environment = [&variable](const std::string& name) -> std::optional<std::string> {
      if (name == "REHEARSAL_EXCEPTION_TRACES" && !variable.empty()) return variable;
      return std::nullopt;
    };
    const Status status = run_worker(made, program);
    EXPECT_FALSE(status.ok());
    return status.ok() ? Error{} : status.error();
  };
  EXPECT_EQ(error("", false).trace, "");
  EXPECT_EQ(error("0", false).trace, "");
  EXPECT_TRUE(error("1", false).trace.starts_with("at solo: refuse\n"));
  EXPECT_TRUE(error("", true).trace.starts_with("at solo: refuse\n"));
  EXPECT_EQ(
      error("yes", false).text,
      "REHEARSAL_EXCEPTION_TRACES=yes: type 1 (errors say where their exceptions were thrown) "
      "or 0 (they do not)");
}

TEST(RunWorker, WrongUseIsOneClearError) {
  const Program program = adding_program();
  WorkerOptions made = options(leased_port(), 0);
  made.node.join_timeout = milliseconds(200);
  made.placement.world_size = 3;
  Status status = run_worker(made, program);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().text, "the program has 2 workers, but the world size (flags) is 3");
  made = options(leased_port(), 2);
  made.node.join_timeout = milliseconds(200);
  made.placement.world_size.reset();
  status = run_worker(made, program);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().text, "rank 2 (flags) is not one of the program's 2 workers");
}

TEST(RunWorker, ItsSpansMetricsAndLogAreWhereTheOptionsSay) {
  // Goal: options and environment reach the observers. Method: one worker is given the options, the
  // other one the variables; their spans are merged.
  const TemporaryFolder made;
  const std::string folder = made.file("spans");
  const Program program = adding_program();
  const uint16_t port = leased_port();
  const uint16_t metrics = leased_port();
  WorkerOptions first = options(port, 0);
  first.observe = {.metrics = std::to_string(metrics), .spans = folder, .log = "off"};
  WorkerOptions second = options(port, 1);
  second.environment = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "REHEARSAL_SPANS") return folder;
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
    const std::string spans = read_whole_file(folder + "/" + name + ".spans.json");
    files.push_back(observe::read_spans(spans).or_throw());
  }
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
  WorkerOptions made = options(leased_port(), 0);
  made.node.join_timeout = milliseconds(200);
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
  const TemporaryFolder folder;
  const std::string path = folder.file("error.json");
  WorkerOptions made = options(leased_port(), 1);
  made.environment = [&path](const std::string& name) -> std::optional<std::string> {
    if (name == "TORCHELASTIC_ERROR_FILE") return path;
    return std::nullopt;
  };
  made.node.join_timeout = milliseconds(200);
  const Program program = adding_program();
  const Status status = run_worker(made, program);
  ASSERT_FALSE(status.ok());
  // torchrun shows the call stack, as it is, and needs the time as digits.
  const auto extra = nlohmann::json::parse(read_whole_file(path)).at("message").at("extraInfo");
  const auto shown = extra.at("py_callstack").get<std::string>();
  EXPECT_EQ(shown, to_string(status.error()));
  EXPECT_NE(shown.find("nobody serves the rendezvous"), std::string::npos) << shown;
  EXPECT_GT(std::stoll(extra.at("timestamp").get<std::string>()), 0);
}

TEST(RunWorker, AnErrorFileOfTorchrunsThatCannotBeWrittenIsTold) {
  testing::internal::CaptureStderr();
  tell_torchrun([](const std::string&) { return std::optional<std::string>("/no/such/file"); },
                {.kind = ErrorKind::timeout, .text = "too late"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "rehearsal: torchrun's error file: /no/such/file: cannot be written: No such file or "
            "directory\n");
}

TEST(RunWorker, SpansThatCannotBeWrittenAreNamedWithTheCause) {
  // Method: in place of the file's folder, a file.
  const TemporaryFolder made;
  const std::string file = made.file("spans");
  std::ofstream(file) << "no folder";
  const auto observers = Observers::make(
                             {.spans = file, .log = "off"},
                             [](const std::string&) { return std::optional<std::string>(); },
                             {"ps"}, WorkerId{0}, nullptr)
                             .or_throw();
  EXPECT_EQ(observers->write_spans().error().text,
            "the spans: " + file +
                "/ps.spans.json: cannot be written: Not a directory; look whether the folder can "
                "be written to and has room");
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
  // Goal: the process is left by _Exit(1), and not waited for. Method: real processes.
  Program program(run_functions());
  program.worker("ps", [](Worker&) {}).worker("trainer", [](Worker& worker) {
    (void)worker.rpc_async("ps", &never_end, int64_t{0});
  });
  const uint16_t port = leased_port();
  WorkerOptions made = options(port, 0);
  made.node.shutdown_timeout = milliseconds(500);
  WorkerOptions trainer = options(port, 1);
  trainer.node.shutdown_timeout = milliseconds(500);
  std::thread other([&] { (void)exit_status_of([&] { (void)run_worker(trainer, program); }); });
  EXPECT_EQ(exit_status_of([&] { (void)run_worker(made, program); }), 1);
  other.join();
}

TEST(RunWorker, APeerThatIsKilledIsNamed) {
  // Goal: a crash ends the others with an error that names the dead. Method: SIGKILL in a call.
  std::array<int, 2> in_call{};
  ASSERT_EQ(pipe(in_call.data()), 0);
  Program program(run_functions());
  program.worker("ps", [](Worker&) {}).worker("trainer", [&in_call](Worker& worker) {
    worker.rpc_sync("ps", &never_end, int64_t{in_call[1]});
  });
  const uint16_t port = leased_port();
  WorkerOptions made = options(port, 1);
  made.node.peer_timeout = seconds(10);
  made.node.heartbeat = seconds(1);
  made.node.shutdown_timeout = seconds(1);
  const pid_t child = fork();
  if (child == 0) {
    WorkerOptions other = made;
    other.placement.rank = 0;
    (void)run_worker(other, program);
    std::_Exit(0);
  }
  std::thread killer([child, &in_call] {
    char mark = 0;
    EXPECT_EQ(read(in_call[0], &mark, 1), 1);
    kill(child, SIGKILL);
  });
  const Status status = run_worker(made, program);
  killer.join();
  int ignored = 0;
  waitpid(child, &ignored, 0);
  for (const int end : in_call) close(end);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(to_string(status.error()).find("'ps'"), std::string::npos) << to_string(status.error());
}

}  // namespace
}  // namespace rehearsal::real
