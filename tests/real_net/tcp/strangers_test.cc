// Goal: a transport knows who is none of its group, and tells when it has no descriptor left.
// Method: ends that connect to each other.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/conformance/transport_suite.h"
#include "tests/real_net/support/tcp_world.h"

namespace rehearsal::real {
namespace {

using What = conformance::RecordingSink::What;
using std::chrono::seconds;

TransportOptions options_of(const std::string& run) {
  TransportOptions options = TcpWorld::quick_options();
  options.run = run;
  options.names = {"ps", "trainer"};
  return options;
}

TEST(Strangers, AWorkerOfAnotherRunIsRefusedAndTheLinkThatStandsIsNotTouched) {
  // Method: the worker 0 of run 'b' has the address of run 'a's worker 1.
  TcpEnd first({0}, 1, options_of("a"));
  TcpEnd second({1}, 1, options_of("a"));
  TcpEnd stranger({0}, 2, options_of("b"));
  const Address address = second.transport.address();
  for (TcpEnd* end : {&first, &stranger})
    run_on(end->runtime, [&] { end->transport.set_address({1}, address); });
  run_on(second.runtime, [&] { second.transport.open({0}); });
  run_on(first.runtime, [&] { first.transport.open({1}); });
  ASSERT_TRUE(wait_until(first.runtime, [&] { return first.sink.up() && second.sink.up(); }));
  run_on(stranger.runtime, [&] { stranger.transport.open({1}); });
  ASSERT_TRUE(wait_until(stranger.runtime, [&] { return stranger.sink.count(What::lost) == 1; }));
  EXPECT_EQ(stranger.sink.count(What::up), 0u);
  EXPECT_NE(stranger.sink.last(What::lost).why.text.find("is of another run ('a')"),
            std::string::npos)
      << stranger.sink.last(What::lost).why.text;
  run_on(first.runtime, [&] { first.transport.send({1}, conformance::small_frame(1)); });
  ASSERT_TRUE(wait_until(first.runtime, [&] { return second.sink.count(What::frame) == 1; }));
  EXPECT_EQ(second.sink.count(What::up), 1u);
  EXPECT_EQ(second.sink.count(What::lost), 0u);
}

TEST(Strangers, AProcessWithoutDescriptorsTellsSoAndTakesTheConnectionLater) {
  // Method: this process may open no file more while a connection waits to be taken.
  std::atomic<int> told{0};
  std::string text;
  TransportOptions options = options_of("a");
  options.on_shortage = [&](const Error& error) {
    text = error.text;
    ++told;
  };
  TcpEnd end({1}, 1, options);
  TcpEnd other({0}, 1, options_of("a"));
  run_on(end.runtime, [&] { end.transport.open({0}); });
  FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int lowest = dup(client.get());
  close(lowest);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(lowest);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  run_on(other.runtime, [&] {
    other.transport.set_address({1}, end.transport.address());
    other.transport.open({1});  // cannot connect either
  });
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(end.transport.address().port);
  const int connected =
      connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  const bool heard = wait_until(end.runtime, [&] { return told > 0; });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(connected, 0);
  EXPECT_TRUE(heard);
  EXPECT_NE(text.find("(this process may have " + std::to_string(lowest) +
                      " descriptors; raise that with ulimit -n)"),
            std::string::npos)
      << text;
  EXPECT_TRUE(wait_until(other.runtime, [&] { return other.sink.up() && end.sink.up(); }));
}

TEST(Strangers, AShortageThatLastsIsToldEverMoreRarely) {
  // Goal: a line, not a flood. Method: a hundred seconds of a failure every 100 ms.
  RareReport report;
  std::vector<int64_t> told;
  Instant now{};
  report.set_tell([&](const Error&) {
    told.push_back(std::chrono::duration_cast<seconds>(now - Instant{}).count());
  });
  for (int i = 0; i < 1000; ++i, now += std::chrono::milliseconds(100))
    report.note({.kind = ErrorKind::overloaded, .text = "none left"}, now);
  EXPECT_EQ(told, (std::vector<int64_t>{0, 5, 15, 35, 75}));
}

}  // namespace
}  // namespace rehearsal::real
