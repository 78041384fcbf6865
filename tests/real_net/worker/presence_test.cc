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
    const auto present = [&](uint32_t worker, uint64_t incarnation) {
      return is_present({worker},
                        {.name = "trainer",
                         .address = end.transport.address(),
                         .incarnation = {incarnation},
                         .world_size = 2},
                        credentials, Clock::now() + seconds(10));
    };
    EXPECT_TRUE(present(1, end.hello.incarnation.value));
    EXPECT_FALSE(present(1, end.hello.incarnation.value + 1)) << "another life of it";
    EXPECT_FALSE(present(0, end.hello.incarnation.value)) << "another worker";
    end.end();
    EXPECT_FALSE(present(1, end.hello.incarnation.value)) << "it has gone";
  }
}

TEST(Presence, APortAtWhichNobodySpeaksIsNoPresenceInTime) {
  const FileDescriptor silent = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  EXPECT_FALSE(is_present(
      {1},
      {.name = "trainer", .address = local_address(silent), .incarnation = {7}, .world_size = 2},
      nullptr, Clock::now() + std::chrono::milliseconds(100)));
}

}  // namespace
}  // namespace rehearsal::real
