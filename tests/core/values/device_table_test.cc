// Goal: a worker knows the map for each peer, and for the answers to its calls the inverse of the
// peer's; both ends say the same of maps that cannot be.
#include "core/values/device_table.h"

#include <gtest/gtest.h>

namespace rehearsal {
namespace {

const std::vector<std::string> kWorkers = {"a", "b"};
constexpr WorkerId kA{0};
constexpr WorkerId kB{1};

TEST(DeviceTable, KnowsTheMapsBothWays) {
  const WorkerDevices a{.count = 2, .maps = {{"b", {{0, 1}}}}};
  const WorkerDevices b{.count = 2, .maps = {{"a", {{0, 0}, {1, 1}}}}};
  DeviceTable of_a(kWorkers, kA, a);
  EXPECT_EQ(of_a.own_mistake(), std::nullopt);
  EXPECT_EQ(of_a.mistake_with(kB, b), std::nullopt);
  ASSERT_NE(of_a.to(kB), nullptr);
  EXPECT_EQ(*of_a.to(kB), (DeviceMap{{0, 1}}));
  EXPECT_EQ(of_a.answers(kB), nullptr);
  of_a.learn(kB, b);
  ASSERT_NE(of_a.answers(kB), nullptr);
  EXPECT_EQ(*of_a.answers(kB), (DeviceMap{{0, 0}, {1, 1}}));
  // A later life may have none.
  of_a.learn(kB, {.count = 2});
  EXPECT_EQ(of_a.answers(kB), nullptr);
}

TEST(DeviceTable, AnswersItselfByTheInverseOfItsOwnMap) {
  const DeviceTable own(kWorkers, kA, {.count = 2, .maps = {{"a", {{0, 1}, {1, 0}}}}});
  ASSERT_NE(own.answers(kA), nullptr);
  EXPECT_EQ(own.answers(kA)->at(1), DeviceNumber(0));
}

TEST(DeviceTable, LeavesWhatItSendsToItselfWhereItIsWithoutAMap) {
  const DeviceTable all(kWorkers, kA, {.count = 2});
  ASSERT_NE(all.to(kA), nullptr);
  EXPECT_EQ(*all.to(kA), (DeviceMap{{0, 0}, {1, 1}}));
  EXPECT_EQ(*all.answers(kA), (DeviceMap{{0, 0}, {1, 1}}));
  const DeviceTable one(kWorkers, kA, {.count = 2, .declared = {1}});
  EXPECT_EQ(one.own_mistake(), std::nullopt);
  EXPECT_EQ(*one.to(kA), (DeviceMap{{1, 1}}));
  EXPECT_EQ(DeviceTable(kWorkers, kA, {}).to(kA), nullptr);
}

TEST(DeviceTable, BothEndsFindTheSameMistake) {
  const WorkerDevices a{.count = 1, .maps = {{"b", {{0, 3}}}}};
  const WorkerDevices b{.count = 2};
  const auto at_a = DeviceTable(kWorkers, kA, a).mistake_with(kB, b);
  const auto at_b = DeviceTable(kWorkers, kB, b).mistake_with(kA, a);
  EXPECT_EQ(at_a,
            "the device map of worker 'a' for worker 'b' cannot be used: worker 'b' has no device "
            "3: it has 2");
  EXPECT_EQ(at_a, at_b);
}

TEST(DeviceTable, AMapForNobodyIsAMistakeOfItsOwn) {
  const WorkerDevices a{.count = 1, .maps = {{"c", {{0, 0}}}}};
  const std::string why =
      "the device map of worker 'a' for worker 'c' cannot be used: there is no worker of this name";
  EXPECT_EQ(DeviceTable(kWorkers, kA, a).own_mistake(), why);
  EXPECT_EQ(DeviceTable(kWorkers, kB, {}).mistake_with(kA, a), why);
  const WorkerDevices to_itself{.count = 1, .maps = {{"a", {{0, 1}}}}};
  EXPECT_EQ(DeviceTable(kWorkers, kA, to_itself).own_mistake(),
            "the device map of worker 'a' for worker 'a' cannot be used: worker 'a' has no device "
            "1: it has 1");
}

}  // namespace
}  // namespace rehearsal
