// Goal: of the calls of each order one runs at a time, in the order of arrival, however they become
// ready and end. Method: all orders of three calls, and two orders side by side.
#include "core/calls/calls_in_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace rehearsal {
namespace {

CausalId id(uint64_t ordinal) { return {{1}, {2, 3}, ordinal}; }

TEST(CallsInOrder, RunInTheOrderOfArrivalInWhateverOrderTheyAreReady) {
  std::array<uint64_t, 3> order = {1, 2, 3};
  do {
    CallsInOrder calls;
    std::string begun;
    for (uint64_t call = 1; call <= 3; ++call) calls.arrived(id(0), id(call));
    for (const uint64_t call : order)
      calls.ready(id(0), id(call), [&begun, call] { begun += std::to_string(call); });
    EXPECT_EQ(begun, "1");
    calls.ended(id(0), id(1));
    EXPECT_EQ(begun, "12");
    calls.ended(id(0), id(2));
    EXPECT_EQ(begun, "123");
    calls.ended(id(0), id(3));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(CallsInOrder, OneThatEndsUnrunHoldsNothingUp) {
  // A refused call ends before it is ready, a later one before its turn.
  CallsInOrder calls;
  std::string begun;
  const auto ready = [&](uint64_t call) {
    calls.ready(id(0), id(call), [&begun, call] { begun += std::to_string(call); });
  };
  for (uint64_t call = 1; call <= 4; ++call) calls.arrived(id(0), id(call));
  ready(2);
  ready(4);
  calls.ended(id(0), id(3));
  EXPECT_EQ(begun, "");
  calls.ended(id(0), id(1));
  EXPECT_EQ(begun, "2");
  calls.ended(id(0), id(2));
  EXPECT_EQ(begun, "24");
  calls.ended(id(0), id(4));
  calls.arrived(id(0), id(5));
  ready(5);
  EXPECT_EQ(begun, "245");
}

TEST(CallsInOrder, TwoOrdersKnowNothingOfEachOther) {
  CallsInOrder calls;
  std::string begun;
  calls.arrived(id(0), id(1));
  calls.arrived(id(9), id(2));
  calls.ready(id(9), id(2), [&] { begun += "2"; });
  calls.ready(id(0), id(1), [&] { begun += "1"; });
  EXPECT_EQ(begun, "21");
}

TEST(CallsInOrder, ManyOfOneOrderCostNoMoreEachThanFew) {
  // Goal: a peer that has very many calls of one order wait holds nobody up. Method: so many that
  // looking through all of them for each takes longer than a test has, from the last to the first.
  constexpr uint64_t kCalls = 400'000;
  CallsInOrder calls;
  uint64_t begun = 0;
  for (uint64_t call = 1; call <= kCalls; ++call) calls.arrived(id(0), id(call));
  for (uint64_t call = kCalls; call > 1; --call)
    calls.ready(id(0), id(call), [&begun] { ++begun; });
  EXPECT_EQ(begun, 0u);
  for (uint64_t call = kCalls; call > 2; --call) calls.ended(id(0), id(call));
  EXPECT_EQ(begun, 0u);
  calls.ended(id(0), id(1));
  EXPECT_EQ(begun, 1u);
  calls.ended(id(0), id(2));
  calls.arrived(id(0), id(3));
  calls.ready(id(0), id(3), [&begun] { ++begun; });
  EXPECT_EQ(begun, 2u);
}

}  // namespace
}  // namespace rehearsal
