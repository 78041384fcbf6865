// Goal: nobody who hangs up on the store of rank 0 ends the process that serves it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "real_net/tcp/socket.h"
#include "real_net/worker/bounded.h"
#include "real_net/worker/meeting_store.h"
#include "tests/leased_port.h"

namespace rehearsal::real {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

bool gets_broken_pipes() {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, SIGPIPE) == 0;
}

TEST(StoreClients, WhatIsStartedWithinATimeLimitGetsNoBrokenPipe) {
  // Goal: threads of a library that is called there inherit that; the caller stays as it is.
  bool first_gets = true, second_gets = true;
  const std::function<bool()> work = [&] {
    first_gets = gets_broken_pipes();
    std::thread([&] { second_gets = gets_broken_pipes(); }).join();
    return true;
  };
  const bool before = gets_broken_pipes();
  EXPECT_TRUE(within(Clock::now() + seconds(60), work).has_value());
  EXPECT_FALSE(first_gets);
  EXPECT_FALSE(second_gets);
  EXPECT_EQ(gets_broken_pipes(), before);
}

// Asks a hundred times and hangs up at once: the answers find nobody.
void ask_and_go(const Address& store) {
  std::string bytes("\x00\xce\xf7\x85\x3c", 5);  // VALIDATE and its number
  for (int i = 0; i < 100; ++i) bytes += std::string("\x0d\x01\x02\x03\x04", 5);  // PING
  const Result<FileDescriptor> socket = connect_within(store, Clock::now() + seconds(60));
  if (!socket.ok()) std::_Exit(3);
  (void)::send(socket.value().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

TEST(StoreClients, ThatAskAndHangUpLeaveTheServerAlive) {
  // Method: a process of its own in which a broken pipe ends the process, as the launchers leave
  // it, serves the store, and goes on to serve it.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    Placement placement;
    placement.rank = 0;
    placement.master = {.host = "127.0.0.1", .port = leased_port()};
    Patience patience(seconds(60), seconds(60), nullptr);
    const auto store = MeetingStore::open(placement, {"ps"}, Seal(Auth{}), patience);
    if (!store.ok()) std::_Exit(2);
    for (int i = 0; i < 50; ++i) ask_and_go(placement.master);
    store.value()->set("key", "text");
    std::_Exit(store.value()->get("key") == "text" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace rehearsal::real
