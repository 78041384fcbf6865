// Goal: a gathering ends for all of its members when one of them dies or comes back, whoever it is
// and whenever that happens. Method: clusters with crashes, with many seeds.
#include <gtest/gtest.h>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"

namespace rehearsal::sim {
namespace {

using std::chrono::seconds;

// Workers 0 and 1 wait at a barrier, for ever if need be, to which worker 2 comes never or late.
Program waiting_for_the_third(std::vector<ErrorKind>& ends, bool comes) {
  Program program{FunctionRegistry()};
  const auto waits = [&ends](Worker& worker) {
    try {
      worker.barrier({}, Timeout::never());
    } catch (const RpcError& error) {
      ends.push_back(error.kind());
    }
  };
  program.worker("worker", waits, Count{2});
  program.worker("late", [comes](Worker& worker) {
    worker.sleep(seconds(10));
    if (comes) worker.barrier({}, Timeout::never());
  });
  return program;
}

TEST(Gathering, ALostMemberFailsItForAllWhoWait) {
  EXPECT_TRUE(hunt({.seeds = 100}, [](Seed seed, const ClusterOptions& options) {
    std::vector<ErrorKind> ends;
    const Program program = waiting_for_the_third(ends, false);
    Cluster cluster(seed, program, options);
    cluster.advance(seconds(5));
    cluster.crash("late");
    (void)cluster.try_run();
    EXPECT_EQ(ends, (std::vector{ErrorKind::peer_lost, ErrorKind::peer_lost}));
  }));
}

TEST(Gathering, TheLossOfTheFirstMemberFailsItToo) {
  EXPECT_TRUE(hunt({.seeds = 100}, [](Seed seed, const ClusterOptions& options) {
    std::vector<ErrorKind> ends;
    const Program program = waiting_for_the_third(ends, true);
    Cluster cluster(seed, program, options);
    cluster.advance(seconds(5));
    cluster.crash("worker0");
    (void)cluster.try_run();
    EXPECT_EQ(ends, (std::vector{ErrorKind::peer_lost}));
  }));
}

TEST(Gathering, AMemberThatComesBackGathersWithTheOthersAnew) {
  EXPECT_TRUE(hunt({.seeds = 100}, [](Seed seed, const ClusterOptions& options) {
    int met = 0;
    Program program{FunctionRegistry()};
    // A worker that fails because a member has come back tries again.
    program.worker(
        "worker",
        [&met](Worker& worker) {
          worker.sleep(seconds(10));
          while (true) {
            try {
              const auto ids = worker.all_gather(worker.id().value, {}, seconds(100));
              EXPECT_EQ(ids.size(), 3u);
              ++met;
              return;
            } catch (const RpcError& error) {
              EXPECT_EQ(error.kind(), ErrorKind::peer_lost);
              worker.sleep(seconds(1));
            }
          }
        },
        Count{3});
    Cluster cluster(seed, program, options);
    cluster.advance(seconds(5));
    cluster.crash("worker1");
    cluster.advance(seconds(1));
    cluster.restart("worker1");
    (void)cluster.try_run();
    EXPECT_EQ(met, 3);
  }));
}

}  // namespace
}  // namespace rehearsal::sim
