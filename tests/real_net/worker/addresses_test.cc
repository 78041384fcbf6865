// Goal: every address that a worker is given may be of either family, a number or a name, and a
// name may have several. Method: whole workers in this process, for each form of loopback, once as
// the place of the store, once where they listen, once where they say that they are reached, once
// for the metrics.
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "real_net/tcp/host_addresses.h"
#include "real_net/worker/metrics_server.h"
#include "real_net/worker/proof.h"
#include "real_net/worker/rendezvous.h"
#include "tests/leased_port.h"
#include "tests/real_net/support/given_names.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

using std::chrono::seconds;

int64_t eight() { return 8; }

Program asking_program() {
  FunctionRegistry registry;
  registry.function("eight", &eight);
  Program program(std::move(registry));
  program.worker("server");
  program.worker("asker", [](Worker& worker) {
    if (worker.rpc_sync("server", &eight) != 8) throw std::logic_error("another number");
  });
  return program;
}

WorkerOptions quiet_options(uint32_t rank) {
  WorkerOptions made;
  made.placement = {.rank = rank, .world_size = {}, .rendezvous = {}};
  made.environment = [](const std::string&) { return std::nullopt; };
  made.num_worker_threads = 1;
  made.observe.log = "off";
  made.node.join_timeout = seconds(30);
  made.node.shutdown_timeout = seconds(30);
  return made;
}

// Both workers, with options that `change` completes, end well.
void expect_that_they_meet(const std::string& host,
                           const std::function<void(WorkerOptions&)>& change) {
  SCOPED_TRACE(host);
  const Program program = asking_program();
  std::vector<Status> ends(2, Status(Unit{}));
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      WorkerOptions options = quiet_options(rank);
      change(options);
      ends[rank] = run_worker(options, program);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << to_string(end.error());
}

TEST(AddressesOfWorkers, TheStoreIsServedWhereItIsSaidToBe) {
  // Goal: rank 0 listens where the others look, and reaches it itself. Method: MASTER_ADDR, and
  // tcp://HOST:PORT.
  for (const std::string& host : loopback_hosts()) {
    const std::map<std::string, std::string> variables = {
        {"MASTER_ADDR", host}, {"MASTER_PORT", std::to_string(leased_port())}};
    expect_that_they_meet(host, [&](WorkerOptions& options) {
      options.environment = [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      };
    });
    const std::string url = "tcp://" + to_string({host, leased_port()});
    expect_that_they_meet(url, [&](WorkerOptions& options) { options.placement.rendezvous = url; });
  }
}

TEST(AddressesOfWorkers, TheyAreReachedWhereTheyListen) {
  // Goal: links of either family. Method: both listen there, at any port, and meet in a file.
  const TemporaryFolder folder;
  for (const std::string& host : loopback_hosts()) {
    const std::string store = "file://" + folder.file("listen" + host);
    expect_that_they_meet(host, [&](WorkerOptions& options) {
      options.placement.rendezvous = store;
      options.listen = Address{.host = host, .port = 0};
    });
  }
}

TEST(AddressesOfWorkers, TheyAreReachedWhereTheySaySo) {
  // Goal: all addresses of a name that a worker advertises are tried. Method: it listens at all of
  // them, and then, of those that have the older family, at that only.
  const TemporaryFolder folder;
  for (const std::string& host : loopback_hosts()) {
    const bool has_older = host == "127.0.0.1" || host == "localhost" || host == kBothFamilies;
    for (const std::string& listen : {std::string(host), std::string("127.0.0.1")}) {
      if (listen != host && !has_older) continue;
      const std::string store = "file://" + folder.file("advertise" + host + listen);
      expect_that_they_meet(host + " at " + listen, [&](WorkerOptions& options) {
        options.placement.rendezvous = store;
        options.listen = Address{.host = listen, .port = 0};
        options.advertise = Address{.host = host, .port = 0};
      });
    }
  }
}

TEST(AddressesOfWorkers, MetricsAreAnsweredThere) {
  // Goal: whoever scrapes by the same name finds them. Method: a connection is taken.
  for (const std::string& host : loopback_hosts()) {
    auto runtime = std::make_shared<RealRuntime>(RuntimeOptions{.worker_threads = 1});
    std::optional<MetricsServer> server;
    server.emplace(*runtime, MetricsServerOptions{.address = {.host = host, .port = 0}},
                   [] { return std::string("page"); });
    const auto limit = std::chrono::steady_clock::now() + seconds(10);
    const auto reached = connect_within({host, server->address().port}, limit);
    EXPECT_TRUE(reached.ok()) << host << ": " << reached.error().text;
    runtime->stop();
    server.reset();
  }
}

TEST(AddressesOfWorkers, NoProofIsAskedForWhereNobodyElseComes) {
  // Goal: a name of loopback is no way in, and a name that others may use is one. Method: the check
  // alone, with and without a choice.
  for (const std::string& host : loopback_hosts()) {
    Placement placement;
    placement.master = {.host = host, .port = 77};
    const Status fits = check_exposure(Auth{}, placement, {.host = host, .port = 0});
    EXPECT_TRUE(fits.ok()) << host << ": " << fits.error().text;
  }
  for (const char* host : {"10.0.0.7", "::"}) {
    Placement placement;
    placement.master = {.host = host, .port = 77};
    EXPECT_FALSE(check_exposure(Auth{}, placement, {.host = "127.0.0.1", .port = 0}).ok()) << host;
    EXPECT_FALSE(check_exposure(Auth{}, {}, {.host = host, .port = 0}).ok()) << host;
  }
}

TEST(AddressesOfWorkers, AProofIsAskedForWhereTheMachineIsNamedAsOthersKnowIt) {
  // Goal: a machine that knows its own name as loopback is not hidden by it. Method: that name as
  // the place of the store, and where the worker listens; the check alone, then a whole worker.
  const std::string own = own_name();
  if (own == "localhost" || is_numeric(own)) GTEST_SKIP() << "it has no name of its own";
  Placement placement;
  placement.master = {.host = own, .port = 77};
  EXPECT_FALSE(check_exposure(Auth{}, placement, {.host = "127.0.0.1", .port = 0}).ok());
  EXPECT_FALSE(check_exposure(Auth{}, {.rank = 1}, {.host = own, .port = 0}).ok());
  EXPECT_TRUE(check_exposure(Auth{.kind = Auth::Kind::none}, placement, placement.master).ok());

  const std::map<std::string, std::string> variables = {
      {"RANK", "0"},
      {"WORLD_SIZE", "2"},
      {"MASTER_ADDR", own},
      {"MASTER_PORT", std::to_string(leased_port())}};
  WorkerOptions options;
  options.environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  options.node.join_timeout = std::chrono::milliseconds(200);
  const Status status = run_worker(options, asking_program());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().text.find("or say --auth none"), std::string::npos)
      << status.error().text;
}

TEST(AddressesOfWorkers, AProofIsAskedForWhereOthersComeByAnotherWay) {
  // Goal: a forwarded port, and a socket that was handed on, are ways in. Method: the check alone.
  const Address hidden{.host = "127.0.0.1", .port = 7000};
  const Placement serves_nothing{.rank = 1};
  for (const std::string& host : loopback_hosts())
    EXPECT_TRUE(check_exposure(Auth{}, serves_nothing, hidden, Address{host, 7000}).ok()) << host;
  const Address forwarded{.host = "10.0.0.7", .port = 7000};
  const Status refused = check_exposure(Auth{}, serves_nothing, hidden, forwarded);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("at 10.0.0.7:7000"), std::string::npos);
  EXPECT_TRUE(
      check_exposure(Auth{.kind = Auth::Kind::none}, serves_nothing, hidden, forwarded).ok());

  const FileDescriptor open = listen_on({.host = "", .port = 0}).or_throw();
  const FileDescriptor closed = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  for (const FileDescriptor* socket : {&open, &closed}) {
    Placement placement;
    placement.master = {.host = "127.0.0.1", .port = local_address(*socket).port};
    placement.listening = socket->get();
    EXPECT_EQ(check_exposure(Auth{}, placement, hidden).ok(), socket == &closed);
    placement.rank = 1;
    EXPECT_TRUE(check_exposure(Auth{}, placement, hidden).ok()) << "it serves nothing";
  }
}

// The lines that a worker is told while it waits.
class Lines {
 public:
  [[nodiscard]] Patience::Tell tell() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_ += line + "\n";
      told_.notify_all();
    };
  }
  // Whether these words come within a minute.
  [[nodiscard]] bool have(const std::string& words) {
    std::unique_lock lock(mutex_);
    return told_.wait_for(lock, seconds(60),
                          [&] { return lines_.find(words) != std::string::npos; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::string lines_;
};

TEST(AddressesOfWorkers, RankZeroSaysThatItDoesNotReachItsStoreByItsName) {
  // Goal: a wrong MASTER_ADDR is told where it can be seen, and whoever reaches rank 0 elsewhere
  // still meets it. Method: an address that only documents have, which no machine answers at.
  const uint16_t port = leased_port();
  Lines lines;
  RendezvousOptions options;
  options.names = {"server", "asker"};
  options.timeout = seconds(60);
  options.first_word = seconds(60);
  options.placement.for_others = true;
  options.placement.master = {.host = "192.0.2.1", .port = port};
  options.tell = lines.tell();
  Rendezvous first(options);
  std::thread serving([&] { EXPECT_TRUE(first.enter().ok()); });
  EXPECT_TRUE(lines.have("does not reach it at 192.0.2.1:" + std::to_string(port)));
  RendezvousOptions other = options;
  other.placement.rank = 1;
  other.placement.master.host = "127.0.0.1";
  other.tell = nullptr;
  Rendezvous second(other);
  EXPECT_TRUE(second.enter().ok());
  serving.join();
}

TEST(AddressesOfWorkers, AnAddressOfLoopbackThatCannotBeListenedOnIsToldAtOnce) {
  // Goal: no waiting, and no other address instead. Method: another socket has the port.
  for (const std::string& host : loopback_hosts()) {
    const FileDescriptor taken = listen_on({.host = host, .port = 0}).or_throw();
    RendezvousOptions options;
    options.names = {"server", "asker"};
    options.timeout = std::chrono::hours(1);
    options.placement.master = {.host = without_brackets(host), .port = local_address(taken).port};
    const Result<uint32_t> entered = Rendezvous(options).enter();
    ASSERT_FALSE(entered.ok()) << host;
    EXPECT_NE(entered.error().text.find("rank 0 cannot serve the rendezvous: cannot listen on"),
              std::string::npos)
        << entered.error().text;
  }
}

}  // namespace
}  // namespace rehearsal::real
