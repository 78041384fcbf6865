#include "real_net/runtime/poller.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;

struct Counting final : IoHandler {
  void on_ready(uint32_t events) override {
    if ((events & EPOLLOUT) != 0) ++writable;
    if ((events & EPOLLIN) != 0) ++readable;
    if ((events & EPOLLHUP) != 0) ++hung_up;
  }
  int writable = 0;
  int readable = 0;
  int hung_up = 0;
};

// Two sockets that are connected.
struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    one = FileDescriptor(ends[0]);
    other = FileDescriptor(ends[1]);
  }
  FileDescriptor one, other;
};

TEST(Poller, TellsOnceThatThereIsRoomUntilItIsAskedAgain) {
  // Goal: a thread that polls while another one is about to write does not hear the same again and
  // again, and still hears what comes in. Method: both ends of a pair, between two threads' steps.
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const FileDescriptor one(ends[0]);
  const FileDescriptor other(ends[1]);
  Poller poller;
  const auto handler = std::make_shared<Counting>();
  const uint64_t id = poller.add(one.get(), EPOLLIN | EPOLLOUT, handler);
  ASSERT_NE(id, Poller::kNotAdded);
  EXPECT_TRUE(poller.wait(Duration::zero()));
  EXPECT_EQ(handler->writable, 1);
  EXPECT_FALSE(poller.wait(Duration::zero()));

  ASSERT_EQ(write(other.get(), "a", 1), 1);
  EXPECT_TRUE(poller.wait(milliseconds(100)));
  EXPECT_TRUE(poller.wait(milliseconds(100)));
  EXPECT_EQ(handler->readable, 2) << "it lasts until it is read";
  EXPECT_EQ(handler->writable, 1);

  poller.change(id, one.get(), EPOLLIN | EPOLLOUT);
  EXPECT_TRUE(poller.wait(milliseconds(100)));
  EXPECT_EQ(handler->writable, 2);
  poller.remove(id, one.get());
  EXPECT_FALSE(poller.wait(Duration::zero()));
}

TEST(Poller, HoldsBackWhatComesWhateverElseIsAskedFor) {
  // Goal: who is told to wait is not told of bytes, also when a writer asks for room meanwhile; the
  // bytes are there afterwards.
  const Pair pair;
  Poller poller;
  const auto handler = std::make_shared<Counting>();
  const uint64_t id = poller.add(pair.one.get(), EPOLLIN, handler);
  poller.hold_input(id, true);
  ASSERT_EQ(write(pair.other.get(), "a", 1), 1);
  EXPECT_FALSE(poller.wait(Duration::zero()));
  poller.change(id, pair.one.get(), EPOLLIN | EPOLLOUT);
  EXPECT_TRUE(poller.wait(Duration::zero()));
  EXPECT_FALSE(poller.wait(Duration::zero()));
  EXPECT_EQ(handler->writable, 1);
  EXPECT_EQ(handler->readable, 0);
  poller.hold_input(id, false);
  EXPECT_TRUE(poller.wait(milliseconds(100)));
  EXPECT_EQ(handler->readable, 1);
  poller.remove(id, pair.one.get());
  poller.hold_input(id, true);  // it has gone: nothing happens
}

TEST(Poller, TellsAQuietOneNoLongerThatItWasHungUpOn) {
  // Goal: the thread that polls does not turn in circles over an end that has gone. Method: a
  // hang-up lasts for ever; once quiet, it is heard once more at most, and again after `change`.
  Pair pair;
  Poller poller;
  const auto handler = std::make_shared<Counting>();
  const uint64_t id = poller.add(pair.one.get(), 0, handler);
  pair.other = FileDescriptor();
  EXPECT_TRUE(poller.wait(milliseconds(100)));
  EXPECT_TRUE(poller.wait(milliseconds(100)));
  EXPECT_EQ(handler->hung_up, 2);
  poller.quieten(id);
  for (int i = 0; i < 5; ++i) poller.wait(Duration::zero());
  EXPECT_LE(handler->hung_up, 3);
  poller.quieten(id);
  EXPECT_FALSE(poller.wait(Duration::zero()));
  poller.change(id, pair.one.get(), 0);
  const int before = handler->hung_up;
  EXPECT_TRUE(poller.wait(milliseconds(100)));
  EXPECT_TRUE(poller.wait(milliseconds(100)));
  EXPECT_EQ(handler->hung_up, before + 2);
  poller.remove(id, pair.one.get());
}

}  // namespace
}  // namespace rehearsal::real
