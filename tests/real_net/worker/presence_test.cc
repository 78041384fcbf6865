// Goal: a worker that runs answers who asks whether it does, and nothing else counts as an answer.
#include "real_net/worker/presence.h"

#include <gtest/gtest.h>

#include "tests/real_net/support/tcp_world.h"

namespace rehearsal::real {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

TEST(Presence, AWorkerAnswersWhoAsksForItsLifeAndForNoOther) {
  // Method: the questions of somebody who knows where it is, before and after it has gone.
  for (const auto& credentials :
       {std::shared_ptr<Credentials>(), with_secret("of this test's group")}) {
    TransportOptions options = TcpWorld::quick_options();
    options.credentials = credentials;
    TcpEnd end({1}, 1, options);
    const auto presence = [&](uint32_t worker, uint64_t incarnation) {
      return presence_of({worker},
                         {.name = "trainer",
                          .address = end.transport.address(),
                          .incarnation = {incarnation},
                          .world_size = 2},
                         credentials, Clock::now() + seconds(10));
    };
    EXPECT_EQ(presence(1, end.hello.incarnation.value), Presence::here);
    EXPECT_EQ(presence(1, end.hello.incarnation.value + 1), Presence::gone) << "another life of it";
    EXPECT_EQ(presence(0, end.hello.incarnation.value), Presence::silent) << "another worker";
    end.end();
    // A listener that the polling thread still holds takes connections for a moment.
    const auto limit = Clock::now() + seconds(10);
    Presence ended = Presence::silent;
    while (ended != Presence::gone && Clock::now() < limit)
      ended = presence(1, end.hello.incarnation.value);
    EXPECT_EQ(ended, Presence::gone) << "its port refuses";
  }
}

TEST(Presence, APortAtWhichNobodySpeaksIsNoPresenceInTime) {
  const FileDescriptor silent = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  const auto presence = presence_of(
      {1},
      {.name = "trainer", .address = local_address(silent), .incarnation = {7}, .world_size = 2},
      nullptr, Clock::now() + std::chrono::milliseconds(100));
  EXPECT_EQ(presence, Presence::silent);
}

}  // namespace
}  // namespace rehearsal::real
