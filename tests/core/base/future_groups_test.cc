#include "core/base/future_groups.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/core/base/node_strand_fixture.h"

namespace rehearsal {
namespace {

class FutureGroupsTest : public NodeStrandFixture {
 protected:
  static Error failure(const std::string& text) {
    return {.kind = ErrorKind::remote_exception, .text = text, .worker = "ps"};
  }
  template <class T>
  static ErrorKind kind_of(const Future<T>& future) {
    return future.result().error().kind;
  }

  Promise<int> number_{strand_};
  Promise<std::string> text_{strand_};
  Promise<Unit> done_{strand_};
};

TEST_F(FutureGroupsTest, FuturesOfSeveralTypesBecomeATupleWhenAllAreComplete) {
  // Goal: values in the order given, whatever the order they come in. Method: three promises.
  const Future<std::tuple<int, std::string, Unit>> all =
      when_all(number_.future(), text_.future(), done_.future());
  done_.complete(Unit{});
  text_.complete(std::string("five"));
  EXPECT_FALSE(all.ready());
  number_.complete(5);
  const auto [number, text, done] = all.wait();
  EXPECT_EQ(number, 5);
  EXPECT_EQ(text, "five");
}

TEST_F(FutureGroupsTest, TheFirstErrorIsThatOfTheTupleAndTheOthersGoOn) {
  const auto all = when_all(number_.future(), text_.future());
  text_.complete(failure("no text"));
  EXPECT_EQ(all.result().error().text, "no text");
  EXPECT_FALSE(number_.future().ready());
  number_.complete(7);
  EXPECT_EQ(number_.future().wait(), 7);
}

TEST_F(FutureGroupsTest, OneThatFailsGivesUpTheOthersIfAsked) {
  // Goal: the others are cancelled, those that are complete stay. Method: tuples and vectors.
  done_.complete(Unit{});
  const auto all =
      when_all(IfOneFails::cancel_rest, number_.future(), text_.future(), done_.future());
  text_.complete(failure("no text"));
  EXPECT_EQ(all.result().error().text, "no text");
  EXPECT_EQ(kind_of(number_.future()), ErrorKind::cancelled);
  EXPECT_TRUE(done_.future().result().ok());

  const Promise<int> one(strand_);
  const Promise<int> other(strand_);
  const auto vector =
      when_all<int>(strand_, IfOneFails::cancel_rest, {one.future(), other.future()});
  other.complete(failure("no other"));
  EXPECT_EQ(vector.result().error().text, "no other");
  EXPECT_EQ(kind_of(one.future()), ErrorKind::cancelled);
}

TEST_F(FutureGroupsTest, OutcomesOfSeveralTypesAreCollected) {
  const auto all = collect_all(number_.future(), text_.future());
  text_.complete(failure("no text"));
  EXPECT_FALSE(all.ready());
  number_.complete(3);
  const auto [number, text] = all.wait();
  EXPECT_EQ(number.value(), 3);
  EXPECT_EQ(text.error().text, "no text");
}

TEST_F(FutureGroupsTest, CollectingEndsWithTheFirstErrorIfTheOthersAreGivenUp) {
  // Goal: it is complete at once, and says of each what became of it. Method: one value comes
  // before the error, one would come after it.
  const auto all =
      collect_all(IfOneFails::cancel_rest, number_.future(), text_.future(), done_.future());
  number_.complete(3);
  text_.complete(failure("no text"));
  const auto [number, text, done] = all.wait();
  EXPECT_EQ(number.value(), 3);
  EXPECT_EQ(text.error().text, "no text");
  EXPECT_EQ(done.error().kind, ErrorKind::cancelled);

  const Promise<int> slow(strand_);
  const Promise<int> failed(strand_);
  failed.complete(failure("failed before"));
  const auto vector =
      collect_all<int>(strand_, IfOneFails::cancel_rest, {slow.future(), failed.future()}).wait();
  EXPECT_EQ(vector.at(0).error().kind, ErrorKind::cancelled);
  EXPECT_EQ(vector.at(1).error().text, "failed before");
}

TEST_F(FutureGroupsTest, CancellingTheWholeGivesUpThePartsOfWhichItNeedsAll) {
  const auto all = when_all(number_.future(), text_.future());
  all.cancel();
  EXPECT_EQ(kind_of(all), ErrorKind::cancelled);
  EXPECT_EQ(kind_of(number_.future()), ErrorKind::cancelled);
  EXPECT_EQ(kind_of(text_.future()), ErrorKind::cancelled);

  const Promise<int> one(strand_);
  const auto outcomes = collect_all<int>(strand_, {one.future()});
  outcomes.cancel();
  EXPECT_EQ(kind_of(outcomes), ErrorKind::cancelled);
  EXPECT_FALSE(one.future().ready());
}

TEST_F(FutureGroupsTest, NothingKeepsAGatheringWhosePartsAreGone) {
  // Goal: a whole that waits owns no part that is not complete, nor does a part own itself through
  // it. Method: the only promise dies; the leak checker watches.
  bool asked = false;
  {
    const Promise<int> lost(strand_);
    lost.future().state()->observe([&asked](FutureCore&) { asked = true; });
    static_cast<void>(when_all(lost.future(), number_.future()));
  }
  EXPECT_TRUE(asked);
}

}  // namespace
}  // namespace rehearsal
