// Goal: over TCP, workers that are well never take each other for dead, whatever `peer_timeout`
// each has, also where it is shorter than the heartbeat that they were given. Method: pairs of
// workers side by side, whose mains only let time pass, ten times as long as the shorter limit of a
// pair; the heartbeat stays at its default of 5 s. tests/sim/silence_limits_test.cc has more
// limits.
#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::real {
namespace {

using std::chrono::seconds;

std::vector<Status> ends_of_idle_pair(Duration of_a, Duration of_b, bool dynamic) {
  Program program{FunctionRegistry()};
  for (const char* name : {"a", "b"})
    program.worker(name, [](Worker& worker) { worker.sleep(seconds(10)); });
  if (dynamic) program.dynamic();
  GroupOptions options;
  options.adjust = [of_a, of_b](NodeOptions& node) {
    node.peer_timeout = node.id == WorkerId{0} ? of_a : of_b;
  };
  return LoopbackGroup(program, options).run();
}

TEST(SilenceLimits, NobodyIsLostOnIdleLinksOverTcp) {
  struct Pair {
    Duration of_a;
    Duration of_b;
    bool dynamic;
  };
  const std::vector<Pair> pairs = {{seconds(1), seconds(1), false},
                                   {seconds(1), seconds(60), false},
                                   {seconds(60), seconds(1), false},
                                   {seconds(1), seconds(4), true}};
  std::vector<std::vector<Status>> ends(pairs.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < pairs.size(); ++i)
    threads.emplace_back([&pair = pairs[i], &end = ends[i]] {
      end = ends_of_idle_pair(pair.of_a, pair.of_b, pair.dynamic);
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < pairs.size(); ++i)
    for (const Status& end : ends[i])
      EXPECT_TRUE(end.ok()) << "pair " << i << ": " << to_string(end.error());
}

}  // namespace
}  // namespace rehearsal::real
