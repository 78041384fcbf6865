// Goal: whatever happens to a member, every wait of the others ends with an error that names it,
// and the next group is as good as new. Method: simulated workers; crashes at every event, members
// that do not do the same, time that is up, lives that come back.
#include <gtest/gtest.h>

#include <optional>

#include "core/api/call_context.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/collectives/group_program.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::FaultLevel;
using std::chrono::seconds;

// Several operations, small and large.
void work_together(const ProcessGroup& group) {
  const at::Tensor small = at::ones({4});
  group.all_reduce(small);
  const at::Tensor large = at::ones({50'000});
  group.all_reduce(large);
  group.broadcast(small, 1);
  group.barrier();
}

TEST(GroupFailure, NamesTheMemberThatDiedWheneverItDied) {
  // Goal: a member may die at any event, also before it has made the group: the others end with
  // peer_lost, or with all done. Method: each member at each of its events.
  for (uint32_t victim = 0; victim < 3; ++victim) {
    const std::string name = "member" + std::to_string(victim);
    const Program program = members(3, [&](Worker& worker) {
      const Instant begin = worker.now();
      try {
        const ProcessGroup group(worker);
        work_together(group);
      } catch (const RpcError& thrown) {
        EXPECT_EQ(thrown.kind(), ErrorKind::peer_lost) << to_string(thrown.error());
        EXPECT_EQ(thrown.error().worker, name) << to_string(thrown.error());
        // It was lost, not only late.
        EXPECT_LT(worker.now() - begin, seconds(59));
      }
    });
    uint64_t moments = 0;
    for (uint64_t moment = 0; moment < 1000; ++moment) {
      ClusterOptions options{.faults = FaultLevel::none};
      options.crash_points = {{WorkerId{victim}, moment}};
      const auto report = Cluster(Seed{1}, program, options).try_run();
      ASSERT_TRUE(report.ok) << victim << " at " << moment << ": " << to_text(*report.failure);
      if (!report.workers.at(victim).crashed) break;
      ++moments;
    }
    EXPECT_GT(moments, 50u);
    EXPECT_LT(moments, 1000u);
  }
}

TEST(GroupFailure, EndsEveryWaitUnderFaultsAndCrashesAtDrawnMoments) {
  EXPECT_TRUE(
      sim::hunt({.seeds = tries(30), .cluster = {.faults = FaultLevel::hostile, .crashes = 1}},
                [](Seed seed, const ClusterOptions& options) {
                  const Program program = members(4, [](Worker& worker) {
                    const ProcessGroup group(worker);
                    for (int i = 0; i < 3; ++i) work_together(group);
                  });
                  Cluster cluster(seed, program, options);
                  cluster.run();
                }));
}

TEST(GroupFailure, OfOneOperationIsThatOfAllLaterOnes) {
  // Goal: after a loss every operation fails at once, also one that was under way; a group of those
  // who live works. Method: a crash while three operations are under way.
  EXPECT_TRUE(sim::hunt({.seeds = tries(25)}, [](Seed seed, const ClusterOptions& options) {
    int ended = 0;
    const Program program = members(3, [&ended](Worker& worker) {
      const ProcessGroup group(worker);
      group.barrier();
      if (worker.id().value == 2) worker.sleep(seconds(1000));
      std::vector<Future<Unit>> under_way;
      for (int i = 0; i < 3; ++i) under_way.push_back(group.all_reduce_async(at::ones({4})));
      under_way.push_back(group.recv_async(at::ones({4}), 2));
      for (const auto& one : under_way) {
        const Error error = error_of([&] { one.wait(); });
        EXPECT_EQ(error.kind, ErrorKind::peer_lost) << to_string(error);
        EXPECT_EQ(error.worker, "member2");
      }
      const Error error = error_of([&] { group.reduce(at::ones({2, 3}), 0, ReduceOp::max); });
      EXPECT_EQ(error.kind, ErrorKind::peer_lost);
      EXPECT_EQ(error.function, "reduce");
      EXPECT_TRUE(contains(error.text, "reduce(max) with root 'member0' of Float[2, 3]"))
          << error.text;
      const ProcessGroup rest(worker, {"member0", "member1"});
      const at::Tensor sum = at::ones({2});
      rest.all_reduce(sum);
      EXPECT_TRUE(at::equal(sum, at::full({2}, 2.0F)));
      ++ended;
    });
    Cluster cluster(seed, program, options);
    cluster.advance(seconds(5));
    cluster.crash("member2");
    (void)cluster.try_run();
    EXPECT_EQ(ended, 2);
  }));
}

TEST(GroupFailure, ALaterLifeIsNotMistakenForTheOneBefore) {
  // Goal: the group ends with the life of its member; a new one has the new life. Method: a member
  // that comes back; all try again until they are through.
  EXPECT_TRUE(sim::hunt({.seeds = tries(50)}, [](Seed seed, const ClusterOptions& options) {
    int through = 0;
    Program program = members(3, [&through](Worker& worker) {
      for (int64_t attempt = 0; attempt < 40; ++attempt) try {
          const ProcessGroup group(worker, {}, {.timeout = seconds(100)});
          worker.sleep(seconds(10));
          const at::Tensor sum = at::ones({3});
          group.all_reduce(sum);
          EXPECT_TRUE(at::equal(sum, at::full({3}, 3.0F)));
          ++through;
          return;
        } catch (const RpcError& error) {
          EXPECT_EQ(error.kind(), ErrorKind::peer_lost) << to_string(error.error());
          worker.sleep(seconds(1));
        }
    });
    Cluster cluster(seed, program, options);
    cluster.advance(seconds(5));
    cluster.crash("member1");
    cluster.advance(seconds(1));
    cluster.restart("member1");
    (void)cluster.try_run();
    EXPECT_EQ(through, 3);
  }));
}

// Runs `first` at member0 and `second` at member1; both fail, with the kind, and with both texts.
void both_fail(ErrorKind kind, const std::function<void(const ProcessGroup&)>& first,
               const std::function<void(const ProcessGroup&)>& second,
               const std::vector<std::string>& texts) {
  EXPECT_TRUE(sim::hunt({.seeds = tries(25)}, [&](Seed seed, const ClusterOptions& options) {
    const Program program = members(2, [&](Worker& worker) {
      const ProcessGroup group(worker, {}, {.timeout = seconds(20)});
      const Error error = error_of([&] { (group.rank() == 0 ? first : second)(group); });
      EXPECT_EQ(error.kind, kind) << to_string(error);
      for (const std::string& text : texts)
        EXPECT_TRUE(contains(error.text, text)) << text << " in " << error.text;
    });
    Cluster(seed, program, options).run();
  }));
}

TEST(GroupFailure, NamesBothWhereTwoDoNotDoTheSame) {
  const auto sum_of = [](at::IntArrayRef sizes) {
    const std::vector<int64_t> kept = sizes.vec();
    return [kept](const ProcessGroup& group) { group.all_reduce(at::ones(kept)); };
  };
  both_fail(ErrorKind::bad_arguments, sum_of({3}), sum_of({4}),
            {"'member0'", "all_reduce(sum) of Float[3]", "'member1'", "Float[4]"});
  both_fail(ErrorKind::bad_arguments, sum_of({3}),
            [](const ProcessGroup& group) { group.all_reduce(at::ones({3}, at::kLong)); },
            {"Float[3]", "Long[3]"});
  both_fail(ErrorKind::bad_arguments, sum_of({300'000}),
            [](const ProcessGroup& group) { group.barrier(); },
            {"all_reduce(sum) of Float[300000]", "barrier"});
  both_fail(
      ErrorKind::bad_arguments,
      [](const ProcessGroup& group) {
        group.all_reduce(at::ones({3}));
        group.broadcast(at::ones({3}), 0);
      },
      [](const ProcessGroup& group) {
        group.broadcast(at::ones({3}), 0);
        group.all_reduce(at::ones({3}));
      },
      {"all_reduce(sum) of Float[3]", "broadcast with root 'member0' of Float[3]"});
  both_fail(
      ErrorKind::bad_arguments, [](const ProcessGroup& group) { group.send(at::ones({3}), 1, 5); },
      [](const ProcessGroup& group) { group.recv(at::ones({2}), 0, 5); },
      {"tag 5 of Float[3]", "tag 5 of Float[2]"});
}

TEST(GroupFailure, OfTimeThatIsUpNamesWhoHasNotCome) {
  // Goal: all know who is missing, also those who wait for another one. Method: a member that comes
  // too late.
  EXPECT_TRUE(sim::hunt({.seeds = tries(25)}, [](Seed seed, const ClusterOptions& options) {
    const Program program = members(3, [](Worker& worker) {
      const ProcessGroup group(worker, {}, {.timeout = seconds(20)});
      if (worker.id().value == 2) return worker.sleep(seconds(60));
      const Error error = error_of([&] { group.all_reduce(at::ones({3})); });
      EXPECT_EQ(error.kind, ErrorKind::timeout) << to_string(error);
      EXPECT_TRUE(contains(error.text, "'member2'")) << error.text;
      EXPECT_TRUE(contains(error.text, "all_reduce(sum) of Float[3]")) << error.text;
    });
    Cluster(seed, program, options).run();
  }));
}

TEST(GroupFailure, AnOperationThatFailsLeavesItsTensorsAsTheyWere) {
  const Program program = members(2, [](Worker& worker) {
    const ProcessGroup group(worker, {}, {.timeout = seconds(1)});
    if (group.rank() == 1) return worker.sleep(seconds(3));
    for (const int64_t size : {3, 300'000}) {
      const at::Tensor tensor = at::ones({size});
      EXPECT_EQ(error_of([&] { group.all_reduce(tensor); }).kind, ErrorKind::timeout);
      EXPECT_TRUE(at::equal(tensor, at::ones({size})));
    }
  });
  Cluster(Seed{1}, program, {.faults = FaultLevel::none}).run();
}

TEST(GroupFailure, OfWrongArgumentsIsFoundBeforeAnythingIsSent) {
  // Goal: what is wrong at one member alone is refused there, and the group goes on.
  const Program program = members(2, [](Worker& worker) {
    const ProcessGroup group(worker);
    const auto is_refused = [&](const std::function<void()>& body, const std::string& text) {
      const Error error = error_of(body);
      EXPECT_EQ(error.kind, ErrorKind::bad_arguments) << to_string(error);
      EXPECT_TRUE(contains(error.text, text)) << error.text;
    };
    const at::Tensor tensor = at::ones({3});
    is_refused([&] { group.broadcast(tensor, 2); }, "no rank 2 in a process group of 2");
    is_refused([&] { group.all_gather({tensor}, tensor); }, "2 outputs are expected, not 1");
    is_refused([&] { group.all_gather({tensor, at::ones({4})}, tensor); }, "Float[4]");
    is_refused([&] { group.all_reduce(at::Tensor()); }, "undefined");
    is_refused([&] { group.all_reduce(tensor.to_sparse()); }, "dense");
    is_refused([&] { group.all_reduce(at::ones({3}, at::kLong), ReduceOp::average); },
               "no average of Long");
    is_refused([&] { group.all_reduce(at::ones({3}, at::kComplexFloat), ReduceOp::min); },
               "no min of ComplexFloat");
    is_refused([&] { group.send(tensor, group.rank()); }, "others only");
    is_refused([&] { ProcessGroup(worker, {"member0", "member0"}); }, "named twice");
    is_refused([&] { ProcessGroup(worker, {"nobody"}); }, "nobody");
    group.all_reduce(tensor);
    EXPECT_TRUE(at::equal(tensor, at::full({3}, 2.0F)));
    // All see the same two orders.
    is_refused(
        [&] {
          ProcessGroup(worker, {worker.name(), group.names()[1 - group.rank()]});
        },
        "'member0' names 'member0', 'member1', 'member1' names 'member1', 'member0'");
    group.barrier();
  });
  Cluster(Seed{1}, program, {.faults = FaultLevel::none}).run();
}

// A group that is made by a served function, and kept by the worker.
struct Keeper {
  std::optional<ProcessGroup> group;
};

void join_group(CallContext& call, const std::vector<std::string>& names) {
  call.with_state<Keeper>([&](Keeper& keeper) { keeper.group.emplace(call, names); });
}
double add_up(CallContext& call, double mine) {
  const at::Tensor sum = at::full({2}, mine);
  call.state<Keeper>().group->all_reduce(sum);
  return sum[0].item<double>();
}

TEST(ProcessGroup, IsMadeByServedFunctionsAndKeptByTheirWorkers) {
  // Goal: a group in a worker's state works for later calls, and holds no shutdown up. Method: a
  // leader that is no member; the oracles of every run.
  FunctionRegistry registry;
  registry.function("join_group", &join_group).function("add_up", &add_up);
  Program program(std::move(registry));
  program.worker("leader", [](Worker& worker) {
    const std::vector<std::string> names = {"member0", "member1", "member2"};
    std::vector<Future<Unit>> joined;
    for (const std::string& name : names)
      joined.push_back(worker.rpc_async(name, &join_group, names));
    for (const auto& one : joined) one.wait();
    std::vector<Future<double>> sums;
    for (size_t i = 0; i < names.size(); ++i)
      sums.push_back(worker.rpc_async(names[i], &add_up, 1.0 + static_cast<double>(i)));
    for (const auto& sum : sums) EXPECT_EQ(sum.wait(), 6.0);
  });
  program
      .worker(
          "member", [](Worker&) {}, Count{3})
      .state<Keeper>();
  EXPECT_TRUE(sim::hunt({.seeds = tries(25)}, [&](Seed seed, const ClusterOptions& options) {
    const auto report = Cluster(seed, program, options).run();
    EXPECT_LT(report.virtual_time, seconds(55));
  }));
}

TEST(GroupFailure, OfACallThatIsGivenUpEndsItsWait) {
  // Goal: a function that uses a group does not outlast whoever waits for it. Method: one of two
  // members is not asked for its part, and the leader gives the other's call up.
  FunctionRegistry registry;
  registry.function("join_group", &join_group).function("add_up", &add_up);
  Program program(std::move(registry));
  program.worker("leader", [](Worker& worker) {
    const std::vector<std::string> names = {"member0", "member1"};
    const auto first = worker.rpc_async("member0", &join_group, names);
    worker.rpc_sync("member1", &join_group, names);
    first.wait();
    const Error error =
        error_of([&] { worker.with_timeout(seconds(1)).rpc_sync("member0", &add_up, 1.0); });
    EXPECT_EQ(error.kind, ErrorKind::timeout) << to_string(error);
    // So does the group, for both, once the member has heard of it.
    worker.sleep(seconds(30));
    const Instant begin = worker.now();
    const Error after = error_of([&] { worker.rpc_sync("member1", &add_up, 1.0); });
    EXPECT_EQ(after.kind, ErrorKind::cancelled) << to_string(after);
    EXPECT_TRUE(contains(after.text, "was given up")) << after.text;
    EXPECT_LT(worker.now() - begin, seconds(14));
  });
  program
      .worker(
          "member", [](Worker&) {}, Count{2})
      .state<Keeper>();
  EXPECT_TRUE(sim::hunt({.seeds = tries(25)}, [&](Seed seed, const ClusterOptions& options) {
    Cluster(seed, program, options).run();
  }));
}

TEST(ProcessGroup, MayBeDroppedWhileItsOperationsAreUnderWay) {
  // Goal: an operation ends after its handle is gone, and parcels for who has let go are refused.
  EXPECT_TRUE(sim::hunt({.seeds = tries(25)}, [](Seed seed, const ClusterOptions& options) {
    const Program program = members(2, [](Worker& worker) {
      const at::Tensor sum = at::ones({3});
      Future<Unit> done;
      {
        const ProcessGroup group(worker);
        done = group.all_reduce_async(sum);
      }
      done.wait();
      EXPECT_TRUE(at::equal(sum, at::full({3}, 2.0F)));
      std::optional<ProcessGroup> group(worker);
      group->barrier();
      if (worker.id().value == 0) {
        group.reset();
        worker.barrier();
        return;
      }
      worker.barrier();
      const Error error = error_of([&] { group->send(sum, 0); });
      EXPECT_EQ(error.kind, ErrorKind::cancelled) << to_string(error);
      EXPECT_TRUE(contains(error.text, "'member0' has let go")) << error.text;
    });
    Cluster(seed, program, options).run();
  }));
}

}  // namespace
}  // namespace rehearsal::testing
