#include "sim/world/clock_guard.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

#include "sim/cluster.h"
#include "tests/sim/adding_program.h"

namespace rehearsal::sim {
namespace {

// The caller that the message must name.
template <class Call>
[[gnu::noinline]] void somebody_who(Call call) {
  call();
  asm volatile("");  // no tail call: this function stays on the stack
}

template <class Call>
void expect_guarded(const std::string& function, Call call) {
  somebody_who(call);  // nobody minds
  const ClockGuard guard;
  EXPECT_DEATH(somebody_who(call), "simulated code called " + function + ": .*\n(.*\n)*.*somebody");
}

void* nothing(void*) { return nullptr; }
int no_number(void*) { return 0; }

// Goal: every way to the clock is guarded. Method: take each, without the guard and with it.
TEST(ClockGuardDeathTest, ReadingAClockEndsTheProcessAndNamesTheCaller) {
  static timespec time;
  static timeval micros;
  expect_guarded("clock_gettime", [] { clock_gettime(CLOCK_REALTIME, &time); });
  expect_guarded("gettimeofday", [] { gettimeofday(&micros, nullptr); });
  expect_guarded("time", [] { time.tv_sec = ::time(nullptr); });
  expect_guarded("clock", [] { time.tv_sec = ::clock(); });
  expect_guarded("timespec_get", [] { std::ignore = timespec_get(&time, TIME_UTC); });
  expect_guarded("std::chrono::steady_clock::now",
                 [] { time.tv_sec = std::chrono::steady_clock::now().time_since_epoch().count(); });
  expect_guarded("std::chrono::system_clock::now", [] {
    time.tv_sec = std::chrono::high_resolution_clock::now().time_since_epoch().count();
  });
}

TEST(ClockGuardDeathTest, SleepingEndsTheProcessAndNamesTheCaller) {
  static const timespec kNothing{0, 1};
  expect_guarded("nanosleep",
                 [] { std::this_thread::sleep_for(std::chrono::nanoseconds(kNothing.tv_nsec)); });
  expect_guarded("clock_nanosleep",
                 [] { clock_nanosleep(CLOCK_MONOTONIC, 0, &kNothing, nullptr); });
  expect_guarded("usleep", [] { usleep(1); });
  expect_guarded("sleep", [] { sleep(0); });
}

TEST(ClockGuardDeathTest, StartingAThreadEndsTheProcessAndNamesTheCaller) {
  expect_guarded("std::thread", [] { std::thread([] {}).join(); });
  expect_guarded("std::thread", [] { std::async(std::launch::async, [] {}).get(); });
  expect_guarded("pthread_create", [] {
    pthread_t thread{};
    ASSERT_EQ(pthread_create(&thread, nullptr, nothing, nullptr), 0);
    pthread_join(thread, nullptr);
  });
  expect_guarded("thrd_create", [] {
    thrd_t thread{};
    ASSERT_EQ(thrd_create(&thread, no_number, nullptr), thrd_success);
    thrd_join(thread, nullptr);
  });
}

TEST(ClockGuardDeathTest, SaysWhatToUseInstead) {
  const ClockGuard guard;
  EXPECT_DEATH(std::chrono::steady_clock::now(), "Ask worker.now\\(\\) instead");
  EXPECT_DEATH(sleep(0), "Wait for a future instead");
  EXPECT_DEATH(std::thread([] {}).join(), "with rpc_async instead");
}

TEST(ClockGuardDeathTest, NestsAndMakesExceptionsForWhatOnlyPeopleSee) {
  const ClockGuard outer;
  {
    const ClockGuard inner;
    const RealClockAllowed allowed;
    const RealClockAllowed again;
    EXPECT_GT(std::chrono::steady_clock::now().time_since_epoch().count(), 0);
  }
  EXPECT_DEATH(std::chrono::steady_clock::now(), "simulated code called");
}

TEST(ClockGuard, AnotherThreadIsNotSimulated) {
  std::promise<void> guarded;
  std::thread other([done = guarded.get_future()]() mutable {
    done.get();
    EXPECT_GT(std::chrono::steady_clock::now().time_since_epoch().count(), 0);
  });
  {
    const ClockGuard guard;
    guarded.set_value();
    other.join();
  }
}

// Goal: what happens inside shared libraries is let through. Method: two of LibTorch's own threads.
TEST(ClockGuard, LibTorchMayStartThreads) {
  const int before = at::get_num_threads();
  const ClockGuard guard;
  at::set_num_threads(2);
  std::promise<void> launched;
  at::launch([&launched] { launched.set_value(); });
  launched.get_future().wait();
  const at::Tensor ones = at::ones({1 << 20});
  EXPECT_EQ(ones.sum().item<double>(), 1 << 20);
  at::set_num_threads(before);
}

[[gnu::noinline]] void look_at_the_clock() {
  if (std::chrono::steady_clock::now().time_since_epoch().count() == 0) throw std::logic_error("");
}

// Goal: the guard holds while a cluster runs, and only then. Method: a worker's main, on its fiber,
// and the test around it.
TEST(ClockGuardDeathTest, HoldsWhileAClusterRuns) {
  Program program{FunctionRegistry{}};
  program.worker("watcher", [](Worker&) { look_at_the_clock(); });
  Cluster cluster(Seed{1}, program);
  look_at_the_clock();
  EXPECT_DEATH(cluster.run(), "steady_clock::now: (.*\n)*.*look_at_the_clock\\(\\)( at .*)?\n");
  const Program adding = adding_program();
  Cluster calm(Seed{1}, adding);
  calm.run();
  look_at_the_clock();
}

// Goal: a worker can tell virtual time. Method: how long a call takes, in two runs.
TEST(ClockGuard, AWorkersClockIsVirtual) {
  std::vector<Duration> spent;
  Program program(adding_functions());
  program.worker("server", [](Worker&) {}).worker("client", [&spent](Worker& worker) {
    const Instant start = worker.now();
    worker.rpc_sync("server", &add, int64_t{1}, int64_t{2});
    spent.push_back(worker.now() - start);
  });
  for (int run = 0; run < 2; ++run) Cluster(Seed{5}, program).run();
  ASSERT_EQ(spent.size(), 2u);
  EXPECT_GT(spent[0], Duration{});
  EXPECT_EQ(spent[0], spent[1]);
}

}  // namespace
}  // namespace rehearsal::sim
