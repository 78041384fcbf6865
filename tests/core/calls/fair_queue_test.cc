#include "core/calls/fair_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace rehearsal {
namespace {

constexpr WorkerId kA{0};
constexpr WorkerId kB{1};
constexpr WorkerId kC{2};

std::vector<int> all_of(FairQueue<int>& queue) {
  std::vector<int> items;
  while (!queue.empty()) items.push_back(queue.pop());
  return items;
}

TEST(FairQueue, TakesTurnsAndKeepsEachWorkersOrder) {
  FairQueue<int> queue;
  for (int item = 1; item <= 4; ++item) queue.push(kA, item);
  queue.push(kC, 31);
  queue.push(kB, 21);
  queue.push(kB, 22);
  EXPECT_EQ(queue.size(), 7u);
  EXPECT_EQ(all_of(queue), (std::vector<int>{21, 31, 1, 22, 2, 3, 4}));
}

TEST(FairQueue, WhoComesLateWaitsForOneTurnOfEachOther) {
  FairQueue<int> queue;
  for (int item = 1; item <= 100; ++item) queue.push(kA, item);
  EXPECT_EQ(queue.pop(), 1);
  queue.push(kB, 21);
  EXPECT_EQ(queue.pop(), 21);
  EXPECT_EQ(queue.pop(), 2);
}

TEST(FairQueue, WhoHasMostGivesWayToWhoHasLess) {
  FairQueue<int> queue;
  EXPECT_FALSE(queue.give_way(kA));
  for (int item = 1; item <= 3; ++item) queue.push(kA, item);
  EXPECT_FALSE(queue.give_way(kA)) << "nobody gives way to himself";
  EXPECT_EQ(queue.give_way(kB), 3);
  queue.push(kB, 21);
  EXPECT_FALSE(queue.give_way(kB)) << "both would have two";
  EXPECT_EQ(all_of(queue), (std::vector<int>{21, 1, 2}));
}

}  // namespace
}  // namespace rehearsal
