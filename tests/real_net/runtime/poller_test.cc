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
  }
  int writable = 0;
  int readable = 0;
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

}  // namespace
}  // namespace rehearsal::real
