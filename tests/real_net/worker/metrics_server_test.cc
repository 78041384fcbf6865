// Metrics of real workers, over HTTP, by raw sockets.
#include "real_net/worker/metrics_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "core/api/worker.h"
#include "core/base/hash.h"
#include "real_net/worker/http_answer.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;

// A blocking client that gives up after some seconds.
class HttpClient {
 public:
  explicit HttpClient(const Address& address) : fd_(begin_connect(address).or_throw()) {
    fcntl(fd_.get(), F_SETFL, 0);
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void end() { shutdown(fd_.get(), SHUT_WR); }
  // All that comes until the other end hangs up; nothing if it does not.
  std::optional<std::string> read_all() {
    std::string all;
    std::array<char, 4096> bytes;
    for (;;) {
      const ssize_t count = recv(fd_.get(), bytes.data(), bytes.size(), 0);
      if (count < 0 && errno != ECONNRESET) return std::nullopt;
      if (count <= 0) return all;
      all.append(bytes.data(), static_cast<size_t>(count));
    }
  }

 private:
  FileDescriptor fd_;
};

std::string scrape(const Address& address) {
  HttpClient client(address);
  client.send("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
  return client.read_all().value_or("no answer");
}

// A server with a page of its own.
class MetricsServerTest : public ::testing::Test {
 protected:
  void begin(MetricsServerOptions options = {}) {
    server = std::make_unique<MetricsServer>(*runtime, options, [this] { return page; });
    on_strand([this] { server->start(); });
  }
  void TearDown() override {
    runtime->stop();
    server.reset();
  }
  template <class F>
  void on_strand(F task) {
    Waiter done;
    runtime->post([this, &done, &task] {
      task();
      runtime->wake(done);
    });
    EXPECT_EQ(runtime->park(done), ParkOutcome::woken);
  }

  std::string page = "a 1\n";
  const std::shared_ptr<RealRuntime> runtime = std::make_shared<RealRuntime>(RuntimeOptions{});
  std::unique_ptr<MetricsServer> server;
};

TEST_F(MetricsServerTest, ListensOnLoopbackAndAnswersOneAfterAnother) {
  // Goal: a scraper gets the page, as long as it asks. Method: small and large pages, split
  // requests.
  begin();
  EXPECT_EQ(server->address().host, "127.0.0.1");
  EXPECT_NE(server->address().port, 0);
  for (const size_t bytes : {size_t{4}, size_t{3'000'000}}) {
    page = std::string(bytes, 'x');
    const std::string answer = scrape(server->address());
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer.substr(0, 200);
    EXPECT_TRUE(answer.ends_with("\r\n\r\n" + page));
  }
  HttpClient slow(server->address());
  slow.send("GET /met");
  EXPECT_TRUE(scrape(server->address()).starts_with("HTTP/1.1 200"));
  slow.send("rics HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(slow.read_all().value_or("").starts_with("HTTP/1.1 200"));
}

TEST_F(MetricsServerTest, HostileBytesAreAnsweredWith400AndAClosedConnection) {
  // Goal: nothing that a stranger sends matters. Method: garbage, too long heads, half requests,
  // and 300 drawn ones; then a good one.
  begin();
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00", 5), std::string("nonsense\r\n\r\n"),
        "GET /metrics HTTP/1.1\r\nA: " + std::string(1'000'000, 'a'), std::string(100'000, '\0')}) {
    HttpClient client(server->address());
    client.send(bytes);
    const std::optional<std::string> answer = client.read_all();
    ASSERT_TRUE(answer.has_value());
    // Unread bytes may break the connection before the answer is read.
    EXPECT_TRUE(answer->empty() || answer->starts_with("HTTP/1.1 400 ")) << *answer;
    EXPECT_TRUE(bytes.size() > 100 || !answer->empty());
  }
  for (uint64_t number = 0; number < 300; ++number) {
    HttpClient client(server->address());
    std::string bytes(mix(number, 3) % 400, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(mix(number, 100 + i));
    client.send(bytes);
    if (number % 3 != 0) client.end();
    EXPECT_TRUE(number % 3 != 1 || client.read_all().has_value()) << number;
  }
  EXPECT_TRUE(scrape(server->address()).ends_with("\r\n\r\na 1\n"));
}

TEST_F(MetricsServerTest, WhoSaysNothingIsDroppedInTimeAndTooManyPushOutTheOldest) {
  // Goal: bounded in time and number. Method: two silent clients where one has room; a short limit.
  begin({.time_limit = milliseconds(50), .connections_max = 1});
  HttpClient silent(server->address());
  silent.send("GET ");
  HttpClient late(server->address());
  late.send("GET ");
  EXPECT_EQ(silent.read_all(), "");
  EXPECT_EQ(late.read_all(), "");
  size_t left = 9;
  on_strand([&] { left = server->connections(); });
  EXPECT_EQ(left, 0u);
  EXPECT_TRUE(scrape(server->address()).starts_with("HTTP/1.1 200"));
}

int64_t sum_of(int64_t a, int64_t b) { return a + b; }

TEST(MetricsOverHttp, AWorkerTellsWhatItHasDone) {
  // Goal: the counts of a real node, while it runs. Method: the trainer calls the server five times
  // and then scrapes both.
  FunctionRegistry registry;
  registry.function("add", &sum_of);
  std::vector<Address> addresses;
  std::string at_ps, at_trainer;
  Program program(registry);
  program.worker("ps", [](Worker&) {}).worker("trainer", [&](Worker& worker) {
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(worker.rpc_sync("ps", &sum_of, i, i), 2 * i);
    at_ps = scrape(addresses.at(0));
    at_trainer = scrape(addresses.at(1));
  });
  GroupOptions options;
  options.metrics = Address{.host = "127.0.0.1", .port = 0};
  LoopbackGroup group(program, options);
  for (uint32_t rank : {0u, 1u}) addresses.push_back(group.node(rank).metrics_address().value());
  for (const Status& end : group.run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
  for (const char* line :
       {"\nrehearsal_served_total{worker=\"ps\",function=\"add\",peer=\"trainer\"} 5\n",
        "\nrehearsal_served_seconds_count{worker=\"ps\",function=\"add\"} 5\n",
        "\nrehearsal_served_waiting{worker=\"ps\"} 0\n",
        "\nrehearsal_links_up_total{worker=\"ps\",peer=\"trainer\"} 1\n"})
    EXPECT_NE(at_ps.find(line), std::string::npos) << line << at_ps;
  for (const char* line :
       {"\nrehearsal_calls_total{worker=\"trainer\",function=\"add\",peer=\"ps\",form=\"rpc_sync\"}"
        " 5\n",
        "\nrehearsal_call_seconds_count{worker=\"trainer\",function=\"add\"} 5\n",
        "\nrehearsal_calls_unanswered{worker=\"trainer\"} 0\n"})
    EXPECT_NE(at_trainer.find(line), std::string::npos) << line << at_trainer;
  EXPECT_EQ(scrape(addresses.at(0)).substr(0, 12), "HTTP/1.1 200");  // Also after the run.
}

}  // namespace
}  // namespace rehearsal::real
