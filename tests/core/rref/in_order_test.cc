// Goal: calls through one handle run in the order in which they were made. Method: a calls a value
// of b; the test delivers what is on its way in the order that it likes.
#include "core/api/in_order.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kLarge = 40'000;  // floats: too many for the small lane

// The calls that the values below have run.
struct DiaryNotes {
  std::vector<int64_t> begun;
  std::vector<Promise<int64_t>> promises;
};
DiaryNotes* diary_notes = nullptr;

class Diary {
 public:
  Diary() = default;
  int64_t write(int64_t number, const at::Tensor& padding) {
    diary_notes->begun.push_back(number);
    if (number < 0) throw std::runtime_error("below zero");
    return padding.numel();
  }
  // Ends when the test says so.
  Future<int64_t> write_later(CallContext& context, int64_t number) {
    diary_notes->begun.push_back(number);
    diary_notes->promises.push_back(context.promise<int64_t>());
    return diary_notes->promises.back().future();
  }
};

class InOrderTest : public CallFixture {
 protected:
  void SetUp() override {
    diary_notes = &notes_;
    registry.type<Diary>("Diary")
        .constructor<>()
        .method("write", &Diary::write)
        .method("write_later", &Diary::write_later);
    begin();
    diary_ = a().calls.remote<Diary>("b");
    settle();
  }
  void TearDown() override {
    diary_ = {};
    CallFixture::TearDown();
    notes_.promises.clear();
    settle();
    EXPECT_EQ(b().served.size(), 0u);
    diary_notes = nullptr;
  }
  // From here on nothing is delivered unasked.
  void hold_all() { world.set_idle(nullptr); }
  void release_all() {
    world.set_idle([this] { return network.deliver_first(); });
    settle();
  }
  using Numbers = std::vector<int64_t>;

  DiaryNotes notes_;
  RRef<Diary> diary_;
};

TEST_F(InOrderTest, ASmallCallDoesNotOvertakeALargeOne) {
  // Method: what is on the small lane arrives first. Without the handle that changes the order.
  for (const bool in_order : {false, true}) {
    notes_.begun.clear();
    hold_all();
    const InOrder<Diary> diary = diary_.in_order();
    std::vector<Future<int64_t>> written;
    for (const int64_t number : {1, 2, 3}) {
      const at::Tensor padding = at::zeros({number == 2 ? 1 : kLarge});
      written.push_back(in_order ? diary.rpc_async(&Diary::write, number, padding)
                                 : diary_.rpc_async(&Diary::write, number, padding));
    }
    for (const Lane lane : {Lane::small, Lane::large})
      for (size_t at = 0; at < network.in_flight().size();)
        if (!network.in_flight()[at].is_close && lane_of(network.in_flight()[at].frame) == lane &&
            network.in_flight()[at].to == WorkerId{1})
          network.deliver(at);
        else
          ++at;
    release_all();
    EXPECT_EQ(notes_.begun, in_order ? Numbers({1, 2, 3}) : Numbers({2, 1, 3}));
    for (const Future<int64_t>& done : written) EXPECT_TRUE(done.result().ok());
  }
}

TEST_F(InOrderTest, OneBeginsWhenTheOneBeforeHasEnded) {
  const InOrder<Diary> diary = diary_.in_order();
  const Future<int64_t> first = diary.rpc_async(&Diary::write_later, int64_t{1});
  const Future<int64_t> second = diary.rpc_async(&Diary::write, int64_t{2}, at::zeros({1}));
  const RRef<int64_t> third = diary.remote(&Diary::write, int64_t{3}, at::zeros({1}));
  const Future<int64_t> apart = diary_.rpc_async(&Diary::write, int64_t{4}, at::zeros({1}));
  settle();
  EXPECT_EQ(notes_.begun, Numbers({1, 4}));
  notes_.promises.at(0).complete(1);
  settle();
  EXPECT_EQ(notes_.begun, Numbers({1, 4, 2, 3}));
}

TEST_F(InOrderTest, OneThatFailsOrIsGivenUpHoldsNothingUp) {
  // One that throws; one that is cancelled while it runs; one that is while it waits.
  const InOrder<Diary> diary = diary_.in_order();
  const Future<int64_t> throws = diary.rpc_async(&Diary::write, int64_t{-1}, at::zeros({1}));
  const Future<int64_t> runs = diary.rpc_async(&Diary::write_later, int64_t{2});
  const Future<int64_t> waits = diary.rpc_async(&Diary::write_later, int64_t{3});
  const Future<int64_t> last = diary.rpc_async(&Diary::write, int64_t{4}, at::zeros({1}));
  settle();
  EXPECT_EQ(notes_.begun, Numbers({-1, 2}));
  waits.cancel();
  settle();
  EXPECT_EQ(notes_.begun, Numbers({-1, 2}));
  runs.cancel();
  settle();
  EXPECT_EQ(notes_.begun, Numbers({-1, 2, 4}));
  EXPECT_EQ(throws.result().error().kind, ErrorKind::remote_exception);
  EXPECT_EQ(last.result().value(), 1);
}

TEST_F(InOrderTest, OneWhoseTimeIsOverStillComesFirst) {
  // Goal: the caller has given up what runs on: the next one does not overlap it. Method: a
  // function that takes longer than its call.
  const InOrder<Diary> diary = diary_.in_order();
  const Future<int64_t> late =
      diary.with_timeout(milliseconds(50)).rpc_async(&Diary::write_later, int64_t{1});
  world.advance(milliseconds(100));
  EXPECT_EQ(late.result().error().kind, ErrorKind::timeout);
  EXPECT_EQ(diary.rpc_sync(&Diary::write, int64_t{2}, at::zeros({5})), 5);
  EXPECT_EQ(notes_.begun, Numbers({1, 2}));
}

TEST_F(InOrderTest, TheOrderLastsThroughALostLink) {
  hold_all();
  const InOrder<Diary> diary = diary_.in_order();
  std::vector<Future<int64_t>> written;
  for (int64_t number = 1; number <= 6; ++number)
    written.push_back(
        diary.rpc_async(&Diary::write, number, at::zeros({number % 2 == 0 ? 1 : kLarge})));
  ASSERT_TRUE(network.deliver_first());
  network.cut(0, 1);
  network.connect(0, 1);
  release_all();
  EXPECT_EQ(notes_.begun, Numbers({1, 2, 3, 4, 5, 6}));
}

TEST_F(InOrderTest, WhatALostCallerHasMadeWaitsForNothing) {
  const InOrder<Diary> diary = diary_.in_order();
  const Future<int64_t> first = diary.rpc_async(&Diary::write_later, int64_t{1});
  const Future<int64_t> second = diary.rpc_async(&Diary::write, int64_t{2}, at::zeros({1}));
  settle();
  b().fence(0);
  settle();
  EXPECT_EQ(b().served.size(), 0u);
  EXPECT_EQ(notes_.begun, Numbers({1}));
}

TEST_F(InOrderTest, AnEmptyReferenceHasNone) {
  EXPECT_EQ(error_of([] { return RRef<Diary>().in_order(); }).kind, ErrorKind::bad_arguments);
}

TEST_F(InOrderTest, HoldsForOnesOwnValue) {
  const InOrder<Diary> diary = a().calls.remote<Diary>("a").in_order();
  const Future<int64_t> first = diary.rpc_async(&Diary::write_later, int64_t{1});
  const Future<int64_t> second = diary.rpc_async(&Diary::write, int64_t{2}, at::zeros({1}));
  settle();
  EXPECT_EQ(notes_.begun, Numbers({1}));
  notes_.promises.at(0).complete(1);
  settle();
  EXPECT_EQ(notes_.begun, Numbers({1, 2}));
}

}  // namespace
}  // namespace rehearsal
