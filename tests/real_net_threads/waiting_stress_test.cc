#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/hash.h"
#include "real_net/runtime/real_runtime.h"
#include "tests/real_net_threads/run_threads.h"

namespace rehearsal::real {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Two sockets joined to each other. A task of the runtime answers each write to `far`.
class Wire {
 public:
  Wire() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    near_ = FileDescriptor(ends[0]);
    far_ = FileDescriptor(ends[1]);
  }
  [[nodiscard]] int near() const { return near_.get(); }
  void write_far(char byte) { ASSERT_EQ(::write(far_.get(), &byte, 1), 1); }

 private:
  FileDescriptor near_;
  FileDescriptor far_;
};

// Posts one task for each byte that arrives.
class ByteHandler final : public IoHandler {
 public:
  ByteHandler(RealRuntime& runtime, int fd, std::function<void(char)> on_byte)
      : runtime_(runtime), fd_(fd), on_byte_(std::move(on_byte)) {}
  void on_ready(uint32_t) override {
    char bytes[64];
    const ssize_t count = ::read(fd_, bytes, sizeof bytes);
    for (ssize_t i = 0; i < count; ++i) {
      runtime_.post([this, byte = bytes[i]] { on_byte_(byte); });
    }
  }

 private:
  RealRuntime& runtime_;
  const int fd_;
  const std::function<void(char)> on_byte_;
};

TEST(WaitingStress, ThreadsThatWakeEachOtherNeverMissAWake) {
  // Goal: park and wake race in every way. Method: pairs of threads hand a turn to each other.
  RealRuntime runtime({.worker_threads = 1});
  constexpr int kPairs = 3;
  constexpr int kRounds = 2'000;
  struct Pair {
    int turn = 0;                             // the strand's
    Waiter* waiting[2] = {nullptr, nullptr};  // the strand's
  };
  std::vector<Pair> pairs(kPairs);
  run_threads(2 * kPairs, [&](int thread) {
    Pair& pair = pairs[thread / 2];
    const int side = thread % 2;
    for (int round = 0; round < kRounds; ++round) {
      Waiter my_turn;
      runtime.post([&] {
        if (pair.turn == side) return runtime.wake(my_turn);
        pair.waiting[side] = &my_turn;
      });
      ASSERT_EQ(runtime.park(my_turn), ParkOutcome::woken);
      runtime.post([&pair, &runtime, side] {
        pair.turn = 1 - side;
        Waiter* other = std::exchange(pair.waiting[1 - side], nullptr);
        if (other != nullptr) runtime.wake(*other);
      });
    }
  });
}

TEST(WaitingStress, TimersEndWaitsOfManyThreads) {
  // Goal: the polling role goes round among threads whose waits begin and end all the time.
  RealRuntime runtime({.worker_threads = 1});
  constexpr int kRounds = 300;
  run_threads(8, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const Duration delay = microseconds(mix(thread, round) % 300);
      const Instant due = runtime.now() + delay;
      Waiter waiter;
      runtime.post([&] { runtime.call_at(due, [&] { runtime.wake(waiter); }); });
      ASSERT_EQ(runtime.park(waiter), ParkOutcome::woken);
      ASSERT_GE(runtime.now(), due);
    }
  });
}

TEST(WaitingStress, CancelledTimersDoNotRun) {
  RealRuntime runtime({.worker_threads = 1});
  run_threads(4, [&](int) {
    for (int round = 0; round < 500; ++round) {
      Waiter waiter;
      runtime.post([&] {
        const TimerId timer = runtime.call_at(runtime.now(), [] { ADD_FAILURE(); });
        runtime.cancel(timer);
        runtime.wake(waiter);
      });
      ASSERT_EQ(runtime.park(waiter), ParkOutcome::woken);
    }
  });
}

TEST(WaitingStress, AnswersFromTheNetworkEndWaits) {
  // Goal: whoever polls completes the waits of all others. Method: each thread asks through a wire
  // of its own; a task of the strand answers.
  RealRuntime runtime({.worker_threads = 1});
  constexpr int kThreads = 6;
  constexpr int kRounds = 1'000;
  std::vector<Waiter*> waiting(kThreads, nullptr);  // the strand's
  std::vector<Wire> wires(kThreads);
  std::vector<uint64_t> ids;
  for (int i = 0; i < kThreads; ++i) {
    auto handler = std::make_shared<ByteHandler>(runtime, wires[i].near(), [&](char thread) {
      runtime.wake(*std::exchange(waiting[thread], nullptr));
    });
    ids.push_back(runtime.poller().add(wires[i].near(), EPOLLIN, handler));
  }
  run_threads(kThreads, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      Waiter waiter;
      runtime.post([&] { waiting[thread] = &waiter; });
      wires[thread].write_far(static_cast<char>(thread));
      ASSERT_EQ(runtime.park(waiter), ParkOutcome::woken);
    }
  });
  for (int i = 0; i < kThreads; ++i) runtime.poller().remove(ids[i], wires[i].near());
}

TEST(WaitingStress, TheReliefThreadPollsWhileAllThreadsCompute) {
  // Goal: protocol work goes on without any waiting thread. Method: this thread never parks.
  RealRuntime runtime({.worker_threads = 1});
  Wire wire;
  std::atomic<int> answered{0};
  auto handler = std::make_shared<ByteHandler>(runtime, wire.near(), [&](char) { ++answered; });
  const uint64_t id = runtime.poller().add(wire.near(), EPOLLIN, handler);
  for (int i = 0; i < 50; ++i) {
    wire.write_far('x');
    const Instant limit = runtime.now() + std::chrono::seconds(10);
    while (answered == i && runtime.now() < limit) std::this_thread::yield();
    ASSERT_EQ(answered, i + 1);
    if (i % 2 == 0) continue;
    Waiter waiter;  // takes the role from the relief thread and gives it back
    runtime.post(
        [&] { runtime.call_at(runtime.now() + microseconds(100), [&] { runtime.wake(waiter); }); });
    ASSERT_EQ(runtime.park(waiter), ParkOutcome::woken);
  }
  runtime.poller().remove(id, wire.near());
}

TEST(WaitingStress, KillEndsEveryWait) {
  RealRuntime runtime({.worker_threads = 1});
  std::atomic<int> waiting{0};
  std::thread killer([&] {
    while (waiting < 5) std::this_thread::yield();
    runtime.kill();
  });
  run_threads(5, [&](int) {
    Waiter never_woken;
    ++waiting;
    EXPECT_EQ(runtime.park(never_woken), ParkOutcome::killed);
    EXPECT_EQ(runtime.park(never_woken), ParkOutcome::killed);
  });
  killer.join();
}

TEST(WaitingStress, ARuntimeStopsWhilePostsArrive) {
  for (int round = 0; round < 50; ++round) {
    RealRuntime runtime({.worker_threads = 2});
    std::atomic<int> ran{0};
    std::thread other([&] {
      for (int i = 0; i < 100; ++i) runtime.post([&] { ++ran; });
    });
    runtime.stop();
    other.join();
    runtime.post([&] { ++ran; });
    EXPECT_EQ(ran, 101);
  }
}

}  // namespace
}  // namespace rehearsal::real
