#include "command_line/budget.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "command_line/wrong_use.h"

namespace rehearsal::command_line {
namespace {

TEST(Budget, IsATimeATimeOfProcessorsOrANumberOfRuns) {
  using enum Budget::Unit;
  const auto read = [](const std::string& text) {
    const Budget budget = parse_budget("--for", text);
    return std::pair(budget.unit, budget.amount);
  };
  EXPECT_EQ(read("60s"), std::pair(seconds, 60.0));
  EXPECT_EQ(read("500ms"), std::pair(seconds, 0.5));
  EXPECT_EQ(read("2h"), std::pair(seconds, 7200.0));
  EXPECT_EQ(read("5m-cpu"), std::pair(processor_seconds, 300.0));
  EXPECT_EQ(read("7runs"), std::pair(runs, 7.0));
  EXPECT_TRUE(parse_budget("--for", "0s").empty());
  for (const char* text : {"", "60", "s", "-1s", "1.5s", "60 s", "60cpu", "1run", "9999999999s"})
    EXPECT_THROW((void)parse_budget("--for", text), WrongUse) << text;
}

TEST(Budget, OfRunsIsSpentByRunsAlone) {
  const Spending spending({Budget::Unit::runs, 10});
  EXPECT_TRUE(spending.left(9));
  EXPECT_FALSE(spending.left(10));
  EXPECT_TRUE(spending.left(3, 0.4));
  EXPECT_FALSE(spending.left(4, 0.4));
  EXPECT_TRUE(spending.left(39, 4));
  EXPECT_FALSE(spending.left(40, 4));
}

TEST(Budget, OfProcessorTimeIsSpentByThisProcessAndItsChildren) {
  // Method: one that this process spends, and one that only a child does.
  const Spending own({Budget::Unit::processor_seconds, 0.05});
  double of_child = 3;  // before the budget began
  const Spending by_child({Budget::Unit::processor_seconds, 3600}, [&] { return of_child; });
  EXPECT_TRUE(by_child.left(1'000'000));
  while (own.left(0)) {
  }
  EXPECT_TRUE(by_child.left(0));
  of_child += 3600;
  EXPECT_FALSE(by_child.left(0));
}

TEST(Budget, OfProcessorTimeIsTenTimesAsMuchOnTheWallAtMost) {
  // Method: one that hardly anybody spends. Each look takes 5 ms on the wall at least, and would
  // have to be made thousands of times to spend it.
  const Spending unspent({Budget::Unit::processor_seconds, 0.05});
  int looks = 0;
  while (unspent.left(0)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++looks;
  }
  EXPECT_LE(looks, 101);
}

TEST(Budget, OfTimeHasAnOvertimeThatBeginsWhenItIsSpent) {
  // Method: budgets that are spent, and not, each with little and with much overtime.
  const Spending spent({Budget::Unit::seconds, 0});
  const Spending left({Budget::Unit::seconds, 3600});
  const Spending runs({Budget::Unit::runs, 1});
  Overtime brief(spent, 0);
  while (!brief.over(0)) {
  }
  EXPECT_FALSE(Overtime(spent, 3600).over(0));
  EXPECT_FALSE(Overtime(left, 0).over(0));
  EXPECT_FALSE(Overtime(runs, 0).over(7));
}

}  // namespace
}  // namespace rehearsal::command_line
