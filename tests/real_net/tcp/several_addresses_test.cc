// Goal: a link is made to a peer whose host has several addresses, at whichever of them it listens.
// Method: two ends, of which one knows the other by a name of both families.
#include <gtest/gtest.h>

#include "tests/real_net/support/given_names.h"
#include "tests/real_net/support/tcp_world.h"

namespace rehearsal::real {
namespace {

using conformance::RecordingSink;
using std::chrono::milliseconds;

TransportOptions impatient_options() {
  TransportOptions options = TcpWorld::quick_options();
  options.handshake_timeout = milliseconds(200);
  return options;
}

// The second one listens at the older family; the first one looks for it by name, the newer family
// first.
struct TwoEnds {
  TwoEnds() {
    run_on(second.runtime, [this] { second.transport.open({0}); });
    run_on(first.runtime, [this] {
      first.transport.set_address({1}, {.host = kBothFamilies, .port = port});
      first.transport.open({1});
    });
  }
  [[nodiscard]] bool up(size_t count) {
    return wait_until(first.runtime,
                      [&] { return first.sink.count(RecordingSink::What::up) >= count; });
  }

  TcpEnd first{{0}, 1, impatient_options()};
  TcpEnd second{{1}, 1, impatient_options()};
  const uint16_t port = second.transport.address().port;
};

TEST(SeveralAddresses, AnAddressThatRefusesIsFollowedByTheNextAtOnce) {
  // Goal: nobody is taken for dead because of it. Method: nothing listens at the newer family.
  TwoEnds ends;
  EXPECT_TRUE(ends.up(1));
  EXPECT_EQ(ends.first.sink.count(RecordingSink::What::refused), 0u);
  ends.second.end();
  // Once its process is gone, its port refuses where it has said itself that it is reached.
  EXPECT_TRUE(wait_until(ends.first.runtime,
                         [&] { return ends.first.sink.count(RecordingSink::What::refused) >= 3; }));
  const auto reports = ends.first.sink.reports();
  EXPECT_EQ(reports.back().refusals.at, "127.0.0.1:" + std::to_string(ends.port));
}

TEST(SeveralAddresses, AnAddressWithAnotherProgramIsFollowedByTheNext) {
  // Goal: a silent program at one address keeps no link from being made at the other. Method: a
  // listener that nobody reads, at the same port of the newer family.
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  TcpEnd second({1}, 1, impatient_options());
  const uint16_t port = second.transport.address().port;
  const FileDescriptor silent = listen_on({.host = "::1", .port = port}).or_throw();
  TcpEnd first({0}, 1, impatient_options());
  run_on(second.runtime, [&] { second.transport.open({0}); });
  run_on(first.runtime, [&] {
    first.transport.set_address({1}, {.host = kBothFamilies, .port = port});
    first.transport.open({1});
  });
  EXPECT_TRUE(
      wait_until(first.runtime, [&] { return first.sink.count(RecordingSink::What::up) > 0; }));
}

}  // namespace
}  // namespace rehearsal::real
