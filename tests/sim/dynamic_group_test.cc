// Goal: workers come to a dynamic group and leave it at any time, on their own; who has joined is
// known to all who have joined before, whatever the network does; what was asked of a worker is
// answered before it goes; a death in the middle holds nobody up. Method: hunts of small programs,
// with crashes and returns; scenes by hand.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "core/api/autograd_context.h"
#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/rref.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "sim/run_report.h"
#include "tests/effort.h"

namespace rehearsal::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t seven() { return 7; }

struct Cell {
  int64_t value = 3;
  int64_t get() const { return value; }
};

// Its destructor calls.
class LastCall {
 public:
  explicit LastCall(const RRef<Cell>& cell) : cell_(cell) {}
  LastCall(LastCall&&) noexcept = default;
  LastCall& operator=(LastCall&&) = delete;
  ~LastCall() {
    if (cell_.name()) (void)cell_.rpc_async(&Cell::get);
  }
  int64_t get() const { return 4; }

 private:
  RRef<Cell> cell_;
};

at::Tensor twice(const at::Tensor& x) { return 2 * x; }
at::Tensor twice_at(CallContext& context, const std::string& where, const at::Tensor& x) {
  return context.rpc_sync(where, &twice, x);
}

// Its destructor waits, at the worker that it was made known to.
class DiesSlowly {
 public:
  DiesSlowly() = default;
  DiesSlowly(DiesSlowly&&) noexcept = default;
  DiesSlowly& operator=(DiesSlowly&&) = delete;
  ~DiesSlowly() {
    if (here_) here_->sleep(seconds(6));
  }
  void make_known(const WorkerAccess& here) { here_ = std::make_unique<WorkerAccess>(here); }

 private:
  std::unique_ptr<WorkerAccess> here_;
};

int64_t call_back(CallContext& context, const std::string& known) {
  return context.rpc_sync(known, &seven);
}

// Has every worker of the program call `known`: who is a member must be able to.
int64_t ask_around(CallContext& context, const std::string& known) {
  int64_t reached = 0;
  for (const std::string& name : context.caller()->names()) {
    try {
      reached += context.rpc_sync(name, &call_back, known) == 7 ? 1 : 0;
    } catch (const RpcError& error) {
      const std::string unknown = "worker '" + known + "' has not joined";
      if (error.error().text.find(unknown) != std::string::npos)
        throw std::logic_error(name + ": " + error.error().text);
    }
  }
  return reached;
}

int64_t nap(CallContext& context, int64_t ms) {
  context.sleep(milliseconds(ms));
  return ms;
}

FunctionRegistry group_functions() {
  FunctionRegistry registry;
  registry.function("seven", &seven)
      .function("twice", &twice)
      .function("twice_at", &twice_at)
      .function("ask_around", &ask_around)
      .function("call_back", &call_back)
      .function("nap", &nap);
  registry.type<Cell>("Cell").constructor<>().method("get", &Cell::get);
  registry.type<LastCall>("LastCall")
      .constructor<const RRef<Cell>&>()
      .method("get", &LastCall::get);
  return registry;
}

// The text of the error that `body` throws; empty if none.
template <class F>
std::string failure(F body) {
  try {
    body();
  } catch (const RpcError& error) {
    return error.error().text;
  }
  return {};
}

class Marks final : public Trace {
 public:
  explicit Marks(std::string text) : text_(std::move(text)) {}
  void on_event(const Event& event) override {
    count += event.kind == EventKind::mark && event.text == text_ ? 1 : 0;
  }
  int count = 0;

 private:
  const std::string text_;
};

Program everybody_asks_around() {
  Program program(group_functions());
  program.worker(
      "worker",
      [](Worker& worker) {
        for (const WorkerInfo& other : worker.members()) {
          try {
            (void)worker.rpc_sync(other.id, &ask_around, worker.name());
          } catch (const RpcError& error) {
            if (error.kind() != ErrorKind::peer_lost && error.kind() != ErrorKind::fenced) throw;
          }
        }
        // The founder stays for the others.
        if (worker.id().value != 0) return;
        for (const WorkerInfo& other : worker.workers())
          if (!failure([&] { worker.wait_for_worker(other.name, seconds(60)); }).empty()) return;
      },
      Count{4});
  return program.dynamic();
}

TEST(DynamicGroup, WhoHasJoinedIsKnownToAllWhoHaveJoined) {
  const Program program = everybody_asks_around();
  for (const FaultLevel faults : {FaultLevel::none, FaultLevel::mild, FaultLevel::hostile})
    EXPECT_TRUE(hunt(
        {.seeds = tries(40), .cluster = {.faults = faults}},
        [&](Seed seed, const ClusterOptions& options) { Cluster(seed, program, options).run(); }));
}

TEST(DynamicGroup, DeathsAndReturnsHoldNobodyUp) {
  const Program program = everybody_asks_around();
  ClusterOptions cluster;
  cluster.faults = FaultLevel::hostile;
  cluster.crashes = 2;
  cluster.restart = Restart::drawn;
  Marks refusals("a worker that had left refused a newcomer");
  cluster.traces.push_back(&refusals);
  uint32_t lives = 0;
  const uint64_t runs = tries(100);
  EXPECT_TRUE(
      hunt({.seeds = runs, .cluster = cluster}, [&](Seed seed, const ClusterOptions& options) {
        Cluster run(seed, program, options);
        for (const WorkerReport& worker : run.run().workers) lives += worker.lives;
      }));
  EXPECT_GT(lives, 4 * runs + runs / 3);  // Many came again,
  EXPECT_GT(refusals.count, 0);           // and some to one that was about to go.
}

// A joiner that a member knows of and that dies is waited for by nobody.
TEST(DynamicGroup, AJoinDoesNotWaitForOneThatDied) {
  Program program(group_functions());
  bool joined = false;
  program.worker("founder", [](Worker& worker) { worker.sleep(seconds(120)); });
  program.worker("dies").worker("comes", [&joined](Worker&) { joined = true; });
  program.dynamic();
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.network().between("dies", "comes").delay(seconds(5), seconds(5));
  ASSERT_TRUE(cluster.run_until([&] { return cluster.now() > Instant{} + seconds(1); }) || true);
  cluster.crash("dies");
  cluster.advance(seconds(2));
  EXPECT_FALSE(joined);  // The founder has not noticed yet, and nor has it.
  cluster.advance(seconds(60));
  EXPECT_TRUE(joined);
  (void)cluster.try_run();
}

TEST(DynamicGroup, ALeaverAnswersWhatItWasAskedAndIsAskedNothingNew) {
  Program program(group_functions());
  program.worker("founder", [](Worker& worker) {
    worker.wait_for_worker("brief");
    const Future<int64_t> asked = worker.rpc_async("brief", &nap, int64_t{3000});
    const RRef<Cell> cell = worker.remote<Cell>("brief");
    EXPECT_EQ(cell.rpc_sync(&Cell::get), 3);
    worker.sleep(seconds(2));  // It is leaving by now, and naps for us.
    EXPECT_EQ(failure([&] { (void)worker.rpc_sync("brief", &seven); }),
              "worker 'brief' is leaving the group");
    EXPECT_EQ(failure([&] { (void)worker.remote<Cell>("brief").rpc_sync(&Cell::get); }),
              "worker 'brief' is leaving the group");
    EXPECT_EQ(worker.members().size(), 1u);
    EXPECT_EQ(asked.wait(), 3000);
    worker.sleep(seconds(2));
    EXPECT_EQ(failure([&] { (void)worker.rpc_sync("brief", &seven); }),
              "worker 'brief' has left the group");
    EXPECT_EQ(failure([&] { (void)cell.rpc_sync(&Cell::get); }),
              "worker 'brief' has left the group");
  });
  program.worker("brief", [](Worker& worker) { worker.sleep(milliseconds(500)); });
  program.dynamic();
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.run();
}

// A value that others refer to does not keep its owner: its destructor runs when that has left.
TEST(DynamicGroup, AValueThatOthersHoldDiesWhenItsOwnerHasLeft) {
  Program program(group_functions());
  program.worker("founder", [](Worker& worker) {
    worker.wait_for_worker("brief");
    const RRef<LastCall> held = worker.remote<LastCall>("brief", worker.remote<Cell>(worker.id()));
    EXPECT_EQ(held.rpc_sync(&LastCall::get), 4);
    worker.sleep(seconds(5));
    EXPECT_EQ(failure([&] { (void)held.rpc_sync(&LastCall::get); }),
              "worker 'brief' has left the group");
  });
  program.worker("brief", [](Worker& worker) { worker.sleep(milliseconds(500)); });
  program.dynamic();
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.run();
}

// It may be run again, as after the loss of any worker that it does not need. The one that leaves
// is asked nothing more by those of the pass when this begins, and waits for its state's
// destructor.
TEST(DynamicGroup, APassThatWaitsWhenOneOfItsWorkersLeavesFailsAsByItsLoss) {
  const auto until = [](Worker& worker, seconds when) {
    worker.sleep(Instant{} + when - worker.now());
  };
  Program program(group_functions());
  program.worker("founder", [until](Worker& worker) {
    for (const char* other : {"brief", "stays", "far"}) worker.wait_for_worker(other);
    const AutogradContext context = worker.autograd_context();
    const at::Tensor x = at::ones({1}).set_requires_grad(true);
    const at::Tensor unused = context.rpc_sync("brief", &twice_at, std::string("stays"), x);
    const at::Tensor far = context.rpc_sync("stays", &twice_at, std::string("far"), x);
    const at::Tensor result = context.rpc_sync("stays", &twice, x);
    until(worker, seconds(12));
    try {
      context.backward({result.sum()}, /*retain_graph=*/true);
      ADD_FAILURE() << "a worker of the pass has left, and it ended well";
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::peer_lost);
      EXPECT_EQ(error.error().text, "worker 'brief' has left the group");
    }
    context.backward({result.sum()});
  });
  program
      .worker("brief",
              [until](Worker& worker) {
                worker.state<DiesSlowly>().make_known(worker);
                until(worker, seconds(11));
              })
      .state<DiesSlowly>();
  for (const char* other : {"stays", "far"})
    program.worker(other, [until](Worker& worker) { until(worker, seconds(60)); });
  program.dynamic();
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.advance(milliseconds(11'500));
  const auto jam = cluster.network().jam("stays", "far");
  cluster.advance(seconds(10));
  cluster.network().heal(jam);
  cluster.run();
}

TEST(DynamicGroup, ValuesThatOthersHoldLetNothingRunOn) {
  Program program(group_functions());
  program.worker(
      "worker",
      [](Worker& worker) {
        std::vector<RRef<LastCall>> held;
        // The founder stays for the others.
        for (const WorkerInfo& other : worker.workers())
          if (worker.id().value == 0)
            (void)failure([&] { worker.wait_for_worker(other.name, seconds(60)); });
        for (const WorkerInfo& other : worker.members()) {
          try {
            held.push_back(worker.remote<LastCall>(other.id, worker.remote<Cell>(other.id)));
            (void)held.back().rpc_sync(&LastCall::get);
          } catch (const RpcError& error) {
            if (error.kind() != ErrorKind::peer_lost && error.kind() != ErrorKind::fenced) throw;
          }
        }
        worker.sleep(milliseconds(1 + worker.id().value));
      },
      Count{3});
  program.dynamic();
  EXPECT_TRUE(hunt({.seeds = 400, .cluster = {.faults = FaultLevel::hostile}},
                   [&](Seed seed, const ClusterOptions& options) {
                     (void)Cluster(seed, program, options).run();
                   }));
}

TEST(DynamicGroup, WhoCannotLeaveInTimeSaysWhoKeepsIt) {
  Program program(group_functions());
  program.worker("founder", [](Worker& worker) {
    worker.wait_for_worker("brief");
    EXPECT_FALSE(failure([&] { (void)worker.rpc_sync("brief", &nap, int64_t{60'000}); }).empty());
  });
  program.worker("brief", [](Worker& worker) { worker.sleep(milliseconds(500)); });
  program.dynamic();
  Marks late("leaving the group timed out");
  ClusterOptions options{.faults = FaultLevel::none};
  options.adjust_node = [](NodeOptions& node) { node.shutdown_timeout = seconds(5); };
  options.traces.push_back(&late);
  Cluster cluster(Seed{1}, program, options);
  (void)cluster.try_run();
  ASSERT_NE(cluster.result("brief"), nullptr);
  EXPECT_EQ(cluster.result("brief")->error().text,
            "leaving the group took too long; is busy; waits for: 'founder'");
  EXPECT_EQ(late.count, 1);
}

TEST(DynamicGroup, WhoIsNotThereIsRefusedAtOnceAndCanBeAwaited) {
  Program program(group_functions());
  program.worker("founder", [](Worker& worker) {
    EXPECT_EQ(failure([&] { (void)worker.rpc_sync("late", &seven); }),
              "worker 'late' has not joined the group");
    EXPECT_EQ(failure([&] { worker.wait_for_worker("late", milliseconds(100)); }),
              "worker 'late' has not come in time");
    EXPECT_EQ(failure([&] { worker.barrier(); }), "the group is dynamic: say which workers gather");
    worker.wait_for_worker("late");
    EXPECT_EQ(worker.members().size(), 2u);
    EXPECT_EQ(worker.workers().size(), 2u);
    EXPECT_EQ(worker.rpc_sync("late", &seven), 7);
    worker.barrier({"founder", "late"});
  });
  program.worker("late", [](Worker& worker) { worker.barrier({"founder", "late"}); });
  program.dynamic();
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.network().between("founder", "late").delay(seconds(1), seconds(1));
  cluster.run();
}

TEST(DynamicGroup, AWorkerThatHasLeftComesAgainAsANewLife) {
  Program program(group_functions());
  std::atomic<int> lives = 0;
  program.worker("founder", [](Worker& worker) {
    worker.wait_for_worker("guest");
    const RRef<Cell> former = worker.remote<Cell>("guest");
    EXPECT_EQ(former.rpc_sync(&Cell::get), 3);
    worker.sleep(seconds(5));
    worker.wait_for_worker("guest");
    EXPECT_EQ(worker.rpc_sync("guest", &seven), 7);
    EXPECT_FALSE(failure([&] { (void)former.rpc_sync(&Cell::get); }).empty());
  });
  program.worker("guest", [&lives](Worker& worker) {
    ++lives;
    worker.sleep(seconds(2));
  });
  program.dynamic();
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  cluster.at(seconds(6), [&] { cluster.restart("guest"); });
  cluster.run();
  EXPECT_EQ(lives, 2);
}

// Without a main a worker serves until all that have one have come and left; it waits for those who
// are late, but not for ever.
TEST(DynamicGroup, AServerLeavesWhenThoseItServesHave) {
  const auto client = [](Worker& worker) { EXPECT_EQ(worker.rpc_sync("server", &seven), 7); };
  Program program(group_functions());
  program.worker("server").worker("client", client, Count{2});
  program.dynamic();
  EXPECT_TRUE(hunt({.seeds = 50, .cluster = {.faults = FaultLevel::mild}},
                   [&](Seed seed, const ClusterOptions& options) {
                     Cluster of_seed(seed, program, options);
                     EXPECT_LT(of_seed.run().virtual_time, seconds(100));
                   }));
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  (void)cluster.run_until([] { return true; });
  cluster.crash("client1");
  EXPECT_GT(cluster.try_run().virtual_time, seconds(300));
  EXPECT_TRUE(cluster.result("server")->ok());
}

TEST(DynamicGroup, WhoFindsNobodySaysWhoIsMissing) {
  Program program(group_functions());
  program.worker("founder").worker("alone", [](Worker&) {});
  program.dynamic();
  ClusterOptions options{.faults = FaultLevel::none};
  options.adjust_node = [](NodeOptions& node) { node.join_timeout = seconds(10); };
  Cluster cluster(Seed{1}, program, options);
  (void)cluster.run_until([] { return true; });
  cluster.crash("founder");
  (void)cluster.try_run();
  ASSERT_NE(cluster.result("alone"), nullptr);
  const std::string& text = cluster.result("alone")->error().text;
  EXPECT_TRUE(text.starts_with(
      "the group has not been joined in time; missing: 'founder' (it founds the group: "))
      << text;
  EXPECT_EQ(cluster.result("alone")->error().worker, "founder");
}

}  // namespace
}  // namespace rehearsal::sim
