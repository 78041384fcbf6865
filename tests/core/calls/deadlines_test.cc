#include "core/calls/deadlines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/base/node_strand_fixture.h"

namespace rehearsal {
namespace {

class DeadlinesTest : public NodeStrandFixture {
 protected:
  Instant in(int milliseconds) const {
    return world_.now() + std::chrono::milliseconds(milliseconds);
  }
  DeadlineId add(int milliseconds, const std::string& name) {
    DeadlineId id;
    on_strand(
        [&] { id = deadlines_.add(in(milliseconds), [this, name] { expired_.push_back(name); }); });
    return id;
  }
  Deadlines deadlines_{*strand_};
  std::vector<std::string> expired_;
};

TEST_F(DeadlinesTest, ExpireInTheOrderOfTheirInstantsAndOfTheirAdding) {
  add(20, "c");
  add(10, "a");
  add(10, "b");
  world_.advance(std::chrono::milliseconds(9));
  EXPECT_TRUE(expired_.empty());
  world_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(expired_, (std::vector<std::string>{"a", "b"}));
  world_.advance(std::chrono::milliseconds(10));
  EXPECT_EQ(expired_, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(deadlines_.size(), 0u);
}

TEST_F(DeadlinesTest, TakeOneTimerForAllOfThem) {
  for (int i = 100; i > 0; --i) add(i, "x");
  EXPECT_EQ(world_.timers(), 1u);
}

TEST_F(DeadlinesTest, ARemovedOneDoesNotExpire) {
  const DeadlineId first = add(10, "a");
  add(20, "b");
  on_strand([&] {
    deadlines_.remove(first);
    deadlines_.remove(first);
    deadlines_.remove({});
  });
  world_.advance(std::chrono::milliseconds(30));
  EXPECT_EQ(expired_, (std::vector<std::string>{"b"}));
}

TEST_F(DeadlinesTest, MayAddRemoveAndClearWhileTheyExpire) {
  on_strand([&] {
    const DeadlineId other = deadlines_.add(in(10), [] {});
    (void)deadlines_.add(in(5), [&, other] {
      deadlines_.remove(other);
      expired_.push_back("first");
      (void)deadlines_.add(world_.now(), [&] {
        expired_.push_back("added");
        deadlines_.clear();
      });
      (void)deadlines_.add(in(1), [&] { expired_.push_back("cleared"); });
    });
  });
  world_.advance(std::chrono::milliseconds(20));
  EXPECT_EQ(expired_, (std::vector<std::string>{"first", "added"}));
  EXPECT_EQ(deadlines_.size(), 0u);
  EXPECT_EQ(world_.timers(), 0u);
}

TEST_F(DeadlinesTest, KnowTheLastLongPauseOfTheProgram) {
  // Goal: whoever looks for progress knows how long the program lets time pass. Method: deadlines
  // of both kinds, asked for by their whole length, before and after each is over.
  using std::chrono::seconds;
  on_strand([&] {
    (void)deadlines_.add(world_.now() + seconds(900), [] {});
    (void)deadlines_.add_pause(world_.now() + seconds(20), [] {});
    (void)deadlines_.add_loose_pause(world_.now() + seconds(60), [] {});
    (void)deadlines_.add_pause(world_.now() + seconds(5), [] {});
  });
  EXPECT_EQ(deadlines_.pause_left(seconds(1)), seconds(60));
  EXPECT_EQ(deadlines_.pause_left(seconds(61)), Duration{});
  EXPECT_EQ(deadlines_.loose_count(), 1u);
  world_.advance(seconds(50));
  EXPECT_EQ(deadlines_.pause_left(seconds(60)), seconds(10));
  EXPECT_EQ(deadlines_.size(), 2u);
  world_.advance(seconds(10));
  EXPECT_EQ(deadlines_.pause_left(Duration{}), Duration{});
  EXPECT_EQ(deadlines_.size(), 1u);
}

}  // namespace
}  // namespace rehearsal
