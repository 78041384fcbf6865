#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/future.h"
#include "tests/core/base/node_strand_fixture.h"

namespace rehearsal {
namespace {

class ContinuationTest : public NodeStrandFixture {
 protected:
  static Error late() { return {.kind = ErrorKind::timeout, .text = "late", .worker = "ps"}; }
  Promise<int> promise_{strand_};
  const Future<int> future_ = promise_.future();
};

TEST_F(ContinuationTest, AValueGoesThroughAChain) {
  // int → string → nothing → unit, each made by the one before.
  std::vector<std::string> seen;
  const Future<std::string> text = future_.then([](int value) { return std::to_string(value); });
  const Future<Unit> noted = text.then([&](const std::string& value) { seen.push_back(value); });
  const Future<int> last = noted.then([] { return 7; });
  EXPECT_FALSE(last.ready());
  promise_.complete(41);
  EXPECT_EQ(last.wait(), 7);
  EXPECT_EQ(seen, (std::vector<std::string>{"41"}));
  EXPECT_EQ(text.wait(), "41");
}

TEST_F(ContinuationTest, AFutureThatIsReturnedIsFollowed) {
  const Promise<std::string> inner(strand_);
  const auto next = future_.then([&](int) { return inner.future(); });
  static_assert(std::is_same_v<decltype(next), const Future<std::string>>);
  promise_.complete(1);
  EXPECT_FALSE(next.ready());
  inner.complete(std::string("inner"));
  EXPECT_EQ(next.wait(), "inner");
}

TEST_F(ContinuationTest, TheErrorOfAFollowedFutureArrives) {
  const Promise<int> inner(strand_);
  inner.complete(late());
  const auto next = future_.then([&](int) { return inner.future(); });
  promise_.complete(1);
  EXPECT_EQ(next.result().error(), late());
}

TEST_F(ContinuationTest, AnEmptyFutureThatIsReturnedIsAnError) {
  const auto next = future_.then([](int) { return Future<int>(); });
  promise_.complete(1);
  EXPECT_EQ(next.result().error().kind, ErrorKind::remote_exception);
  EXPECT_NE(next.result().error().text.find("empty future"), std::string::npos);
}

TEST_F(ContinuationTest, AnErrorSkipsWhoAsksForAValue) {
  bool ran = false;
  const auto next = future_.then([&](int) { ran = true; }).then([&] { ran = true; });
  promise_.complete(late());
  EXPECT_EQ(next.result().error(), late());
  EXPECT_FALSE(ran);
}

TEST_F(ContinuationTest, WhoAsksForAResultSeesTheErrorAndMayMendIt) {
  const auto next =
      future_.then([](const Result<int>& result) { return result.ok() ? result.value() : -1; });
  promise_.complete(late());
  EXPECT_EQ(next.wait(), -1);
}

TEST_F(ContinuationTest, WhatIsThrownBecomesTheError) {
  const auto next = future_.then([](int) -> int { throw std::runtime_error("no"); });
  promise_.complete(1);
  const Error error = next.result().error();
  EXPECT_EQ(error.kind, ErrorKind::remote_exception);
  EXPECT_EQ(error.worker, "w");
  EXPECT_EQ(error.function, "continuation");
  EXPECT_EQ(error.text, "std::runtime_error: no");
}

TEST_F(ContinuationTest, AReferenceThatIsReturnedIsCopied) {
  const std::string kept = "kept";
  const auto next = future_.then([&](int) -> const std::string& { return kept; });
  promise_.complete(1);
  EXPECT_EQ(next.wait(), "kept");
}

TEST_F(ContinuationTest, SeveralContinuationsRunInTheOrderTheyWereGiven) {
  std::vector<int> order;
  for (int i = 0; i < 4; ++i) (void)future_.then([&order, i](int) { order.push_back(i); });
  EXPECT_TRUE(order.empty());
  promise_.complete(1);
  (void)future_.then([&order](int) { order.push_back(4); });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_F(ContinuationTest, ItRunsOffTheStrandAndMayNotPark) {
  MaybeError refused;
  const auto next = future_.then([&](int) {
    EXPECT_FALSE(runtime_->on_strand());
    refused = future_.result().error();
  });
  promise_.complete(1);
  EXPECT_TRUE(next.result().ok());
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->kind, ErrorKind::would_park);
}

TEST_F(ContinuationTest, ItsPathIsTheOrdinalOfItsThen) {
  // The order of runs does not decide the paths: `then` numbers, completion does not.
  const Promise<int> other(strand_);
  std::vector<Hash128> paths(2);
  const auto first = future_.then([&](int) { paths[0] = strand_->running().path(); });
  const auto second = other.future().then([&](int) { paths[1] = strand_->running().path(); });
  other.complete(1);
  promise_.complete(1);
  const CausalId main{{9}, main_->path(), 0};
  EXPECT_EQ(paths[0], main.execution_path());
  EXPECT_EQ(paths[1], (CausalId{{9}, main_->path(), 1}).execution_path());
}

TEST_F(ContinuationTest, ATenThousandLongChainEnds) {
  Future<int> last = future_;
  for (int i = 0; i < 10000; ++i) last = last.then([](int value) { return value + 1; });
  promise_.complete(0);
  EXPECT_EQ(last.wait(), 10000);
  EXPECT_EQ(strand_->continuations(), 0u);
}

TEST_F(ContinuationTest, AfterTheEndOfTheNodeNoneRuns) {
  bool ran = false;
  const auto next = future_.then([&](int) { ran = true; });
  on_strand([&] { strand_->close(stopped()); });
  promise_.complete(1);
  EXPECT_EQ(next.result().error(), stopped());
  EXPECT_FALSE(ran);
}

TEST_F(ContinuationTest, AMoveOnlyClosureIsFine) {
  const auto next =
      future_.then([owned = std::make_unique<int>(5)](int value) { return value + *owned; });
  promise_.complete(1);
  EXPECT_EQ(next.wait(), 6);
}

}  // namespace
}  // namespace rehearsal
