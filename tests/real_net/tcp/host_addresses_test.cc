// Goal: a host is all its addresses, of both families, wherever one listens or connects. Method:
// loopback in every form, and names with one and with two addresses, which the test gives.
#include "real_net/tcp/host_addresses.h"

#include <gtest/gtest.h>

#include "real_net/tcp/own_addresses.h"
#include "real_net/tcp/socket.h"
#include "tests/real_net/support/given_names.h"

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;

Status connect_to_host(const std::string& host, uint16_t port) {
  const auto reached =
      connect_within({.host = host, .port = port}, Clock::now() + std::chrono::seconds(10));
  return reached.ok() ? Status(Unit{}) : Status(reached.error());
}

std::string host_of(const Result<FileDescriptor>& listening) {
  return listening.ok() ? local_address(listening.value()).host : listening.error().text;
}

TEST(HostAddresses, AreAllThatTheResolverKnowsOnceEach) {
  // Goal: nothing but the first result was looked at. Method: names of one and of two addresses.
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ(numeric_addresses_of({kBothFamilies, 77}).or_throw(),
            (Addresses{{"::1", 77}, {"127.0.0.1", 77}}));
  EXPECT_EQ(numeric_addresses_of({kNewFamily, 77}).or_throw(), (Addresses{{"::1", 77}}));
  EXPECT_EQ(numeric_addresses_of({"[::1]", 77}).or_throw(), (Addresses{{"::1", 77}}));
  EXPECT_EQ(numeric_addresses_of({"", 77}).or_throw(), (Addresses{{"::", 77}, {"0.0.0.0", 77}}));
  const Result<Addresses> unknown = numeric_addresses_of({std::string(70, 'x'), 77});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().text.find("is not known"), std::string::npos);
}

TEST(HostAddresses, AreLoopbackByTheirNumberNotByTheirLetters) {
  // Goal: whoever listens at loopback needs no proof, and nobody else. Method: look-alikes.
  for (const char* host :
       {"127.0.0.1", "127.9.9.9", "::1", "[::1]", "::ffff:127.0.0.1", "localhost"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"127.example.org", "10.0.0.1", "::", "0.0.0.0", "128.0.0.1", "::2", ""})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(HostAddresses, OfThisMachineAreListenedOnAndReachedByTheSameName) {
  // Goal: whoever says one name at both ends finds the other. Method: every form of loopback.
  for (const std::string& host : loopback_hosts()) {
    const Result<FileDescriptor> listening = listen_on({.host = host, .port = 0});
    ASSERT_TRUE(listening.ok()) << host << ": " << listening.error().text;
    const Status reached = connect_to_host(host, local_address(listening.value()).port);
    EXPECT_TRUE(reached.ok()) << host << ": " << reached.error().text;
  }
}

TEST(HostAddresses, AreTriedInTurnUntilOneAnswers) {
  // Goal: a name leads there whichever of its addresses is listened on. Method: the older family,
  // which comes second.
  const FileDescriptor listening = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  const uint16_t port = local_address(listening).port;
  const Status reached = connect_to_host(kBothFamilies, port);
  EXPECT_TRUE(reached.ok()) << reached.error().text;
  EXPECT_FALSE(connect_to_host("127.0.0.2", port).ok());
}

TEST(HostAddresses, ThatStandForAllAreOfBothFamilies) {
  // Goal: a worker that listens at all addresses is reached by either family. Method: both ways to
  // say so.
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  for (const char* host : {"", "::"}) {
    const FileDescriptor listening = listen_on({.host = host, .port = 0}).or_throw();
    EXPECT_TRUE(is_anywhere(local_address(listening).host));
    for (const char* way : {"127.0.0.1", "::1"}) {
      const Status reached = connect_to_host(way, local_address(listening).port);
      EXPECT_TRUE(reached.ok()) << reached.error().text;
    }
  }
}

TEST(OwnAddresses, AreThoseThatWereNamedIfThisMachineHasThem) {
  // Goal: a store is where it was said to be. Method: loopback; a name with several addresses; an
  // address that documents only.
  EXPECT_EQ(host_of(listen_as({"127.0.0.2", 0}, false)), "127.0.0.2");
  EXPECT_EQ(host_of(listen_as({"127.0.0.2", 0}, true)), "127.0.0.2");
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ(host_of(listen_as({"::1", 0}, true)), "::1");
  EXPECT_EQ(host_of(listen_as({kNewFamily, 0}, false)), "::1");
  EXPECT_EQ(host_of(listen_as({kBothFamilies, 0}, false)), "::1");
  EXPECT_EQ(host_of(listen_as({kBothFamilies, 0}, true)), "::");
  EXPECT_EQ(host_of(listen_as({"192.0.2.1", 0}, true)), "::");
}

TEST(OwnAddresses, StayHereWhereNobodyElseMayCome) {
  // Goal: a name that is loopback here is no way in. Method: names as two ends see them.
  for (const std::string& host : loopback_hosts())
    EXPECT_TRUE(stays_on_this_machine({host, 1}, false)) << host;
  EXPECT_TRUE(stays_on_this_machine({"::1", 1}, true));
  EXPECT_FALSE(stays_on_this_machine({kBothFamilies, 1}, true));
  EXPECT_FALSE(stays_on_this_machine({"0.0.0.0", 1}, false));
  EXPECT_FALSE(stays_on_this_machine({"10.0.0.1", 1}, false));
  for (const std::string& host : loopback_hosts())
    EXPECT_TRUE(is_loopback(address_towards({host, 1}, false))) << host;
}

TEST(OwnAddresses, AreThoseOfOthersWhereTheMachineIsCalledSo) {
  // Goal: others know this machine's name as another address than it does itself, so whoever names
  // it is no longer hidden. Method: the resolver knows it as 127.0.1.1.
  const Address own{.host = own_name(), .port = 0};
  if (own.host == "localhost" || is_numeric(own.host)) GTEST_SKIP() << "it has no name of its own";
  ASSERT_EQ(numeric_addresses_of(own).or_throw(), (Addresses{{"127.0.1.1", 0}}));
  EXPECT_FALSE(stays_on_this_machine(own, false));
  EXPECT_FALSE(stays_on_this_machine(own, true));
  EXPECT_TRUE(is_anywhere(host_of(listen_as(own, false))));
  EXPECT_TRUE(is_anywhere(host_of(listen_as(own, true))));
}

}  // namespace
}  // namespace rehearsal::real
