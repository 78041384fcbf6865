#include "core/base/future.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/future_groups.h"
#include "tests/core/base/node_strand_fixture.h"

namespace rehearsal {
namespace {

class FutureTest : public NodeStrandFixture {
 protected:
  static Error late() { return {.kind = ErrorKind::timeout, .text = "late", .worker = "ps"}; }
  template <class T>
  void complete_in(Duration after, const Promise<T>& promise, Result<T> result) {
    runtime_->call_at(world_.now() + after, [promise, result] { promise.complete(result); });
  }
};

TEST_F(FutureTest, WaitParksUntilTheValueIsThere) {
  const Promise<std::string> promise(strand_);
  complete_in<std::string>(std::chrono::seconds(2), promise, std::string("done"));
  const Future<std::string> future = promise.future();
  EXPECT_FALSE(future.ready());
  EXPECT_EQ(future.wait(), "done");
  EXPECT_EQ(world_.now(), Instant(std::chrono::seconds(2)));
  EXPECT_TRUE(future.ready());
  EXPECT_EQ(future.wait(), "done");
  EXPECT_EQ(world_.now(), Instant(std::chrono::seconds(2)));
}

TEST_F(FutureTest, AnErrorIsThrownByWaitAndGivenByResult) {
  const Promise<int> promise(strand_);
  promise.complete(late());
  EXPECT_EQ(promise.future().result().error(), late());
  EXPECT_THROW((void)promise.future().wait(), RpcError);
}

TEST_F(FutureTest, OnlyTheFirstCompletionCounts) {
  const Promise<int> promise(strand_);
  promise.complete(1);
  promise.complete(2);
  promise.complete(late());
  EXPECT_EQ(promise.future().wait(), 1);
}

TEST_F(FutureTest, APromiseThatIsDroppedCancels) {
  // Two copies: the future fails when the last one dies.
  std::optional<Promise<int>> promise(strand_);
  std::optional<Promise<int>> copy = promise;
  const Future<int> future = promise->future();
  promise.reset();
  EXPECT_FALSE(future.ready());
  copy.reset();
  EXPECT_TRUE(future.ready());
  EXPECT_EQ(future.result().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(future.result().error().worker, "w");
}

TEST_F(FutureTest, APromiseThatDiesAfterItsCompletionChangesNothing) {
  std::optional<Promise<int>> promise(strand_);
  const Future<int> future = promise->future();
  promise->complete(5);
  promise.reset();
  EXPECT_EQ(future.wait(), 5);
}

// Throws when it is copied or moved, once it is told so.
struct Brittle {
  explicit Brittle(std::shared_ptr<const bool> breaks) : broken(std::move(breaks)) {}
  Brittle(const Brittle& other) : broken(other.broken) {
    if (*broken) throw std::length_error("moved too late");
  }
  std::shared_ptr<const bool> broken;
};

TEST_F(FutureTest, AValueThatCannotBeMovedFailsItsFutureAndNoOther) {
  // The value breaks on its way to the strand, where nothing may be thrown.
  const auto broken = std::make_shared<bool>(false);
  const Promise<Brittle> promise(strand_);
  const Future<Brittle> future = promise.future();
  const auto followed = future.then([](const Result<Brittle>& given) { return given.ok(); });
  on_strand([&] {
    promise.complete(Brittle(broken));
    *broken = true;
  });
  const Result<Brittle> result = future.result();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::remote_exception);
  EXPECT_EQ(result.error().worker, "w");
  EXPECT_EQ(result.error().text, "std::length_error: moved too late");
  EXPECT_FALSE(followed.wait());
}

TEST_F(FutureTest, WaitersWakeInTheOrderTheyCame) {
  // Five observers of one state, and one that comes when it is complete.
  const Promise<int> promise(strand_);
  const Future<int> future = promise.future();
  std::vector<int> order;
  on_strand([&] {
    for (int i = 0; i < 5; ++i)
      future.core()->observe([&order, i](FutureCore& core) {
        order.push_back(i * 10 + FutureState<int>::of(core).value());
      });
  });
  promise.complete(3);
  on_strand([&] { future.core()->observe([&order](FutureCore&) { order.push_back(99); }); });
  EXPECT_EQ(order, (std::vector<int>{3, 13, 23, 33, 43, 99}));
}

TEST_F(FutureTest, WhereNothingMayParkWaitAndReadySaySo) {
  // On the strand: neither may claim that an incomplete future is ready.
  const Promise<int> promise(strand_);
  const Future<int> future = promise.future();
  on_strand([&] {
    EXPECT_EQ(future.result().error().kind, ErrorKind::would_park);
    EXPECT_THROW((void)future.ready(), RpcError);
  });
}

TEST_F(FutureTest, TheEndOfTheNodeEndsItsWaits) {
  const Promise<int> promise(strand_);
  runtime_->call_at(world_.now(), [&] { strand_->close(stopped()); });
  EXPECT_EQ(promise.future().result().error(), stopped());
  EXPECT_TRUE(promise.future().ready());
}

TEST_F(FutureTest, WhatWasCompleteBeforeTheEndIsStillKnown) {
  const Promise<int> promise(strand_);
  promise.complete(4);
  on_strand([&] { strand_->close(stopped()); });
  EXPECT_EQ(promise.future().wait(), 4);
}

TEST_F(FutureTest, AKilledNodeUnwindsWhoAsks) {
  const Promise<int> promise(strand_);
  runtime_->call_at(world_.now(), [&] {
    strand_->kill();
    runtime_->kill();
  });
  EXPECT_THROW((void)promise.future().wait(), NodeKilled);
}

TEST_F(FutureTest, AllValuesComeInTheOrderGiven) {
  // Complete three in another order than asked for.
  std::vector<Promise<int>> promises;
  std::vector<Future<int>> futures;
  for (int i = 0; i < 3; ++i) {
    promises.emplace_back(strand_);
    futures.push_back(promises.back().future());
  }
  const Future<std::vector<int>> all = when_all(futures);
  promises[2].complete(20);
  promises[0].complete(0);
  EXPECT_FALSE(all.ready());
  promises[1].complete(10);
  EXPECT_EQ(all.wait(), (std::vector<int>{0, 10, 20}));
}

TEST_F(FutureTest, TheFirstErrorEndsTheWaitForAll) {
  const Promise<int> slow(strand_);
  const Promise<int> fails(strand_);
  const Promise<int> fails_later(strand_);
  const auto all = when_all<int>({slow.future(), fails.future(), fails_later.future()});
  fails.complete(late());
  EXPECT_EQ(all.result().error(), late());
  fails_later.complete(stopped());
  slow.complete(1);
  EXPECT_EQ(all.result().error(), late());
}

TEST_F(FutureTest, AllOfNothingIsReadyAtOnce) {
  const Future<std::vector<int>> all = when_all<int>(strand_, {});
  EXPECT_TRUE(all.ready());
  EXPECT_TRUE(all.wait().empty());
}

TEST_F(FutureTest, OfNoneOrOfAnEmptyOneIsAnErrorThatSaysSo) {
  // Goal: a slip of the program ends no process. Method: each form that takes no strand.
  const auto refused = [](auto&& make) {
    try {
      static_cast<void>(make());
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_arguments);
      return error.error().text;
    }
    return std::string();
  };
  const std::vector<Future<int>> none;
  const Future<int> empty;
  const Promise<int> promise(strand_);
  const Future<int> there = promise.future();
  const std::string no_worker =
      " of no future, or of an empty one, has no worker: ask the worker's own if there may be none";
  EXPECT_EQ(refused([&] { return when_all(none); }), "when_all" + no_worker);
  EXPECT_EQ(refused([&] { return when_any(none); }), "when_any" + no_worker);
  EXPECT_EQ(refused([&] { return when_all(empty, there); }), "when_all" + no_worker);
  EXPECT_EQ(refused([&] { return collect_all(empty, there); }), "collect_all" + no_worker);
  const std::string second = "future 1 of 2 is empty: it was never assigned";
  EXPECT_EQ(refused([&] { return when_all<int>({there, empty}); }), second);
  EXPECT_EQ(refused([&] { return when_any<int>({there, empty}); }), second);
  EXPECT_EQ(refused([&] { return when_all(there, empty); }), second);
  EXPECT_EQ(refused([&] { return collect_all<int>(strand_, {there, empty}); }), second);
}

TEST_F(FutureTest, AFutureThatNobodyCompletesKeepsNothingAlive) {
  // The node ends while a continuation and a when_all wait: their closures must die all the same.
  auto alive = std::make_shared<int>(1);
  {
    std::optional<Promise<int>> promise(strand_);
    const auto next = promise->future().then([alive](int value) { return value; });
    const auto all = when_all<int>({promise->future(), next});
    const auto after = all.then([alive](const std::vector<int>&) {});
    EXPECT_EQ(alive.use_count(), 3);
    on_strand([&] { strand_->close(stopped()); });
    promise.reset();
    EXPECT_EQ(after.result().error(), stopped());
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(FutureDeathTest, CompletingAStateTwiceIsABug) {
  doubles::TestWorld world;
  doubles::RecordingTrace trace;
  auto runtime = std::make_shared<doubles::TestRuntime>(world);
  auto state = std::make_shared<FutureState<int>>(
      std::make_shared<NodeStrand>(runtime, runtime.get(), &trace, WorkerId{0}, "w", Seed{1}),
      CausalId{});
  state->complete(1);
  EXPECT_DEATH(state->complete(2), "ready");
}

}  // namespace
}  // namespace rehearsal
