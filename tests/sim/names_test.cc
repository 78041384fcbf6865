// Goal: a look-up ends when the worker that it asks dies, with who and why, and finds what the next
// life publishes; a life's state and names end with it. Method: clusters with crashes at given
// moments, with many seeds.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const RpcError& thrown) {
    return thrown.error();
  }
  return {};
}

int64_t is_alive() { return 1; }

// Waits until the server is known to be lost.
void see_loss(const WorkerAccess& worker) {
  while (error_of([&] { (void)worker.rpc_sync("server", &is_alive); }).kind != ErrorKind::peer_lost)
    worker.sleep(seconds(1));
}

// Looks for what nobody publishes any more, for ever; `looked`: the errors by which that ended.
std::vector<Error>* looked = nullptr;
void look_for_ever(CallContext& context) {
  see_loss(context);
  looked->push_back(
      error_of([&] { (void)context.lookup<int64_t>("server", "number", Timeout::never()); }));
  looked->push_back(error_of([&] { context.wait_for_worker("server", Timeout::never()); }));
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("is_alive", &is_alive).function("look_for_ever", &look_for_ever);
  return registry;
}

// By silence, or by its port, as the network has it.
bool says_why_it_is_gone(const std::string& text) {
  return text.find("worker 'server' was lost") != std::string::npos ||
         text.find("worker 'server' has ended: its port refuses") != std::string::npos;
}

TEST(Names, AWorkerThatDiesWhileItIsAskedIsNamedWithTheCause) {
  EXPECT_TRUE(hunt({.seeds = 100}, [](Seed seed, const ClusterOptions& options) {
    Error found;
    Program program{functions()};
    program.worker("asker", [&found](Worker& worker) {
      found = error_of([&] { (void)worker.lookup<int64_t>("server", "number", Timeout::never()); });
    });
    program.worker("server", [](Worker& worker) { worker.sleep(seconds(3600)); });
    Cluster cluster(seed, program, options);
    cluster.advance(seconds(5));
    cluster.crash("server");
    (void)cluster.try_run();
    EXPECT_EQ(found.kind, ErrorKind::peer_lost);
    EXPECT_EQ(found.worker, "server");
    EXPECT_TRUE(says_why_it_is_gone(found.text)) << found.text;
  }));
}

TEST(Names, ALookUpOfAWorkerThatIsGoneWaitsForItsTimeAndSaysWhyItIsGone) {
  EXPECT_TRUE(hunt({.seeds = 100}, [](Seed seed, const ClusterOptions& options) {
    Error found;
    Program program{functions()};
    program.worker("asker", [&found](Worker& worker) {
      see_loss(worker);
      found = error_of([&] { (void)worker.lookup<int64_t>("server", "number", seconds(20)); });
    });
    program.worker("server", [](Worker& worker) {
      worker.publish("number", worker.rref<int64_t>(1));
      worker.sleep(seconds(3600));
    });
    Cluster cluster(seed, program, options);
    cluster.advance(seconds(5));
    cluster.crash("server");
    (void)cluster.try_run();
    EXPECT_EQ(found.kind, ErrorKind::timeout);
    EXPECT_TRUE(found.text.starts_with("worker 'server' has not come in time: ")) << found.text;
    EXPECT_TRUE(says_why_it_is_gone(found.text)) << found.text;
  }));
}

TEST(Names, AFunctionThatNobodyWaitsForWaitsForNoWorker) {
  // Goal: a shutdown does not wait for a worker that is gone. Method: who has another one look for
  // it gives up, or dies; the function goes on, and waits once more.
  for (const bool dies : {false, true}) {
    EXPECT_TRUE(hunt({.seeds = 50}, [dies](Seed seed, const ClusterOptions& options) {
      std::vector<Error> ends;
      looked = &ends;
      Program program{functions()};
      program.worker("asker", [dies](Worker& worker) {
        const Future<Unit> future =
            worker.with_timeout(Timeout::never()).rpc_async("looker", &look_for_ever);
        worker.sleep(seconds(dies ? 3600 : 60));
        future.cancel();
      });
      program.worker("looker", [](Worker&) {});
      program.worker("server", [](Worker& worker) { worker.sleep(seconds(3600)); });
      Cluster cluster(seed, program, options);
      cluster.advance(seconds(5));
      cluster.crash("server");
      cluster.advance(seconds(200));
      if (dies) cluster.crash("asker");
      (void)cluster.try_run();
      ASSERT_EQ(ends.size(), 2u);
      for (const Error& end : ends) {
        EXPECT_EQ(end.kind, ErrorKind::cancelled) << end.text;
        EXPECT_EQ(end.worker, "looker");
      }
      looked = nullptr;
    }));
  }
}

// Which life of the server made it.
struct Life {
  explicit Life(Worker& worker) {
    const auto lived = worker.load_checkpoint("lives");
    number = lived ? lived->toInt() + 1 : 1;
    worker.save_checkpoint("lives", number);
  }
  int64_t number = 0;
};

// Of its state, and of the checkpoint, which it saves anew.
int64_t life_of(CallContext& context) {
  const int64_t number = context.state<Life>().number;
  EXPECT_EQ(context.load_checkpoint("lives")->toInt(), number);
  context.save_checkpoint("lives", number);
  return number;
}

TEST(Names, ALookUpFindsWhatTheNextLifePublishes) {
  // Goal: the asker waits for the new life, and for it to publish; names and states are that
  // life's.
  EXPECT_TRUE(hunt({.seeds = 100}, [](Seed seed, const ClusterOptions& options) {
    std::vector<int64_t> found;
    FunctionRegistry registry = functions();
    registry.function("life_of", &life_of);
    Program program(std::move(registry));
    program.worker("asker", [&found](Worker& worker) {
      found.push_back(worker.lookup<int64_t>("server", "life").to_here());
      found.push_back(worker.rpc_sync("server", &life_of));
      see_loss(worker);
      found.push_back(worker.lookup<int64_t>("server", "life", seconds(300)).to_here());
      found.push_back(worker.rpc_sync("server", &life_of));
    });
    program
        .worker("server",
                [](Worker& worker) {
                  worker.sleep(milliseconds(10));
                  worker.publish("life", worker.rref<int64_t>(worker.state<Life>().number));
                })
        .state<Life>();
    Cluster cluster(seed, program, options);
    ASSERT_TRUE(cluster.run_until([&] { return found.size() == 2; }));
    cluster.crash("server");
    cluster.advance(seconds(100));
    cluster.restart("server");
    (void)cluster.try_run();
    EXPECT_EQ(found, (std::vector<int64_t>{1, 1, 2, 2}));
  }));
}

// Takes its time to be made.
struct Slow {
  explicit Slow(Worker& worker) {
    worker.sleep(seconds(3));
    made = true;
  }
  bool made = false;
};

bool is_made(CallContext& context) { return context.state<Slow>().made; }

TEST(Names, NobodyIsServedBeforeTheStateIsMade) {
  // Goal: a life that comes back is asked when it has made its state. Method: the asker calls as
  // soon as it knows the new life.
  EXPECT_TRUE(hunt({.seeds = 100}, [](Seed seed, const ClusterOptions& options) {
    bool made = false;
    FunctionRegistry registry = functions();
    registry.function("is_made", &is_made);
    Program program(std::move(registry));
    program.worker("asker", [&made](Worker& worker) {
      see_loss(worker);
      worker.wait_for_worker("server", seconds(300));
      made = worker.rpc_sync("server", &is_made);
    });
    program.worker("server").state<Slow>();
    Cluster cluster(seed, program, options);
    cluster.advance(seconds(10));
    cluster.crash("server");
    cluster.advance(seconds(100));
    cluster.restart("server");
    (void)cluster.try_run();
    EXPECT_TRUE(made);
  }));
}

TEST(Names, AWorkerThatComesBackInTheShutdownIsToldThatStatesHaveEnded) {
  // Goal: what ends with a shutdown is said to have ended. Method: the asker crashes at each of its
  // events in turn and comes back; its second life has the state's value, or is told.
  int told = 0;
  for (uint64_t point = 10; point < 150; ++point) {
    FunctionRegistry registry = functions();
    registry.function("is_made", &is_made);
    Program program(std::move(registry));
    program.worker("asker", [&told](Worker& worker) {
      const Error error = error_of([&] { EXPECT_TRUE(worker.rpc_sync("server", &is_made)); });
      if (error.text == "worker 'server' shuts down: its state has ended") ++told;
    });
    program.worker("server").state<Slow>();
    ClusterOptions options{.faults = FaultLevel::none,
                           .restart = Restart::drawn,
                           .crash_points = {{WorkerId{0}, point}}};
    Cluster cluster(Seed{point}, program, options);
    (void)cluster.try_run();
  }
  EXPECT_GT(told, 0);
}

TEST(Names, AWorkerThatLeavesTellsThoseWhoWaitForANameOfIts) {
  // The question may also come too late, or not before the server has gone.
  int told = 0;
  EXPECT_TRUE(hunt({.seeds = 100}, [&told](Seed seed, const ClusterOptions& options) {
    Error found;
    Program program{functions()};
    program.worker("asker", [&found](Worker& worker) {
      found = error_of([&] { (void)worker.lookup<int64_t>("server", "number", Timeout::never()); });
    });
    program.worker("server", [](Worker& worker) { worker.sleep(seconds(5)); });
    program.dynamic();
    Cluster cluster(seed, program, options);
    cluster.run();
    EXPECT_EQ(found.kind, ErrorKind::peer_lost) << to_string(found);
    EXPECT_EQ(found.worker, "server");
    if (found.text == "worker 'server' leaves the group, and publishes nothing as 'number'") ++told;
  }));
  EXPECT_GT(told, 50);
}

}  // namespace
}  // namespace rehearsal::sim
