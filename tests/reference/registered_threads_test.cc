// Goal: a thread that the main has started makes calls once it is registered; one that is not is
// told how, and whoever calls when the worker has ended learns that. Method: nodes on loopback,
// once with two worker threads, once with one and once with none; the simulator beside them.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "tests/real_net/support/loopback_group.h"
#include "tests/reference/row.h"
#include "tests/temporary_folder.h"

namespace rehearsal::reference::registered_threads_test {
namespace {

int64_t doubled(int64_t number) { return 2 * number; }

Program program_of(const Program::Main& main) {
  FunctionRegistry registry;
  registry.function("doubled", &doubled);
  Program program(std::move(registry));
  program.worker("caller", main).worker("server");
  return program;
}

void run_everywhere(const Program::Main& main) {
  for (const uint32_t threads : {2, 1, 0}) {
    SCOPED_TRACE("worker threads: " + std::to_string(threads));
    const Program program = program_of(main);
    real::LoopbackGroup group(program, {.worker_threads = threads});
    for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
  }
}

TEST(ReferenceThreads, CallsAndWaitsAsTheMainDoes) {
  // Four threads at once, each with synchronous, asynchronous and continued calls.
  run_everywhere([](Worker& worker) {
    std::atomic<int64_t> sum = 0;
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < 4; ++i)
      threads.emplace_back([&worker, &sum, i] {
        const auto known = worker.register_thread("thread" + std::to_string(i));
        sum += worker.rpc_sync("server", &doubled, i);
        sum += worker.rpc_async("server", &doubled, i)
                   .then([](int64_t number) { return number + 1; })
                   .wait();
        sum += worker.remote("server", &doubled, i).to_here();
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(sum, 3 * 2 * (0 + 1 + 2 + 3) + 4);
  });
}

TEST(ReferenceThreads, ARandomNumberDependsOnTheNameAndNotOnTiming) {
  // Two threads of different names draw different numbers, the same in every run.
  std::vector<std::pair<double, double>> draws;
  const auto main = [&draws](Worker& worker) {
    const auto draw_in = [&worker](const std::string& name) {
      double drawn = 0;
      std::thread([&] {
        const auto known = worker.register_thread(name);
        drawn = at::rand({1}).item<double>();
      }).join();
      return drawn;
    };
    const double one = draw_in("one");
    draws.emplace_back(one, draw_in("other"));
  };
  run_everywhere(main);
  ASSERT_EQ(draws.size(), 3u);
  EXPECT_NE(draws[0].first, draws[0].second);
  EXPECT_EQ(draws[0], draws[1]);
  EXPECT_EQ(draws[0], draws[2]);
}

TEST(ReferenceThreads, AThreadThatIsNotRegisteredIsToldHow) {
  run_everywhere([](Worker& worker) {
    std::string told;
    std::thread([&] {
      try {
        (void)worker.rpc_sync("server", &doubled, 1);
      } catch (const std::logic_error& error) {
        told = error.what();
      }
    }).join();
    EXPECT_EQ(told,
              "this thread is not known to worker 'caller': keep what "
              "worker.register_thread(\"a name\") returns on it while it calls");
    // No longer, either.
    std::thread([&] {
      { const auto known = worker.register_thread("briefly"); }
      EXPECT_THROW((void)worker.rpc_sync("server", &doubled, 1), std::logic_error);
    }).join();
  });
}

TEST(ReferenceThreads, TheShutdownWaitsForIt) {
  // The thread goes on calling after the main has returned, until all its calls are answered.
  for (const uint32_t threads : {2, 1, 0}) {
    std::thread thread;
    std::promise<void> registered;
    std::optional<int64_t> sum;
    const Program program = program_of([&](Worker& worker) {
      thread = std::thread([&] {
        const auto known = worker.register_thread("late");
        registered.set_value();
        int64_t added = 0;
        for (int64_t i = 0; i < 200; ++i) added += worker.rpc_sync("server", &doubled, i);
        sum = added;
      });
      registered.get_future().wait();
    });
    real::LoopbackGroup group(program, {.worker_threads = threads});
    for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
    thread.join();
    EXPECT_EQ(sum, 199 * 200);
  }
}

TEST(ReferenceThreads, WhoeverCallsWhenTheWorkerHasEndedLearnsThat) {
  // From the thread that ran the main and from one that was never registered, while the node is
  // there and when it is gone.
  for (const uint32_t threads : {2, 1, 0}) {
    std::optional<Calls> kept;
    const auto expect_stopped = [&kept] {
      const Error error = error_of([&] { (void)kept->rpc_sync("server", &doubled, 1); });
      EXPECT_EQ(error.kind, ErrorKind::node_stopped) << to_string(error);
      EXPECT_EQ(error.worker, "caller");
    };
    const Program program = program_of([&](Worker& worker) { kept = worker; });
    {
      real::LoopbackGroup group(program, {.worker_threads = threads});
      for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok());
      expect_stopped();
      std::thread(expect_stopped).join();
    }
    expect_stopped();
    std::thread(expect_stopped).join();
  }
}

TEST(ReferenceThreads, IsRefusedWhereItCannotBe) {
  // On the main's own stack, and where the worker is recorded.
  run_everywhere([](Worker& worker) {
    const Error error = error_of([&] { (void)worker.register_thread("again"); });
    EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
    EXPECT_NE(error.text.find("known to the worker already, as 'caller'"), std::string::npos);
  });
  const TemporaryFolder folder;
  const Program program = program_of([](Worker& worker) {
    std::thread([&] {
      const Error error = error_of([&] { (void)worker.register_thread("recorded"); });
      EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
      EXPECT_NE(error.text.find("a worker that is recorded"), std::string::npos);
    }).join();
  });
  real::LoopbackGroup group(program, {.record_folder = folder.path().string()});
  for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
}

TEST(ReferenceThreads, TheSimulatorSaysThatItHasNone) {
  // And what is used after a simulated run gives why the worker ended, too.
  std::optional<Calls> kept;
  const Program program = program_of([&](Worker& worker) {
    const Error error = error_of([&] { (void)worker.register_thread("simulated"); });
    EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
    EXPECT_NE(error.text.find("in the simulator there are none"), std::string::npos);
    kept = worker;
  });
  sim::Cluster cluster(Seed{1}, program);
  cluster.run();
  const Error error = error_of([&] { (void)kept->rpc_sync("server", &doubled, 1); });
  EXPECT_EQ(error.kind, ErrorKind::node_stopped) << to_string(error);
  EXPECT_EQ(error.worker, "caller");
}

}  // namespace
}  // namespace rehearsal::reference::registered_threads_test
