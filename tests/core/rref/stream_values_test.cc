#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/core/rref/rref_fixture.h"

namespace rehearsal {
namespace {

using Texts = std::vector<std::string>;
using Value = Future<std::optional<RRef<Counter>>>;

// Streams of references, and streams of methods.
class StreamValuesTest : public RRefFixture {
 protected:
  // b gets references to so many values of c, which nobody else holds.
  void give_to_b(int count) {
    for (int i = 0; i < count; ++i) {
      const RRef<Counter> rref = a().calls.remote<Counter>("c", i);
      static_cast<void>(a().calls.rpc_async("b", &keep, rref));
      deliver_all();
    }
    deliver_all();
  }
};

TEST_F(StreamValuesTest, AReferenceIsConfirmedBeforeItsValueIsGiven) {
  begin();
  give_to_b(1);
  Stream<RRef<Counter>> stream = a().calls.rpc_stream("b", &give_all);
  const Value value = stream.next_async();
  deliver("a>b Call");
  EXPECT_EQ(in_flight(), (Texts{"b>a Item", "b>a End"}));
  deliver("b>a End");
  deliver("b>a Item");
  EXPECT_EQ(in_flight(), (Texts{"a>c ForkRequest"}));
  EXPECT_FALSE(value.ready());
  EXPECT_EQ(b().rrefs.pending_child_count(), 1u);
  deliver("a>c ForkRequest");
  EXPECT_FALSE(value.ready());
  deliver("c>a ForkConfirm");
  ASSERT_TRUE(value.ready());
  deliver_while_waiting();
  EXPECT_EQ(value.wait()->rpc_sync(&Counter::get), 0);
  EXPECT_EQ(stream.next(), std::nullopt);
}

TEST_F(StreamValuesTest, WhatComesAfterTheStreamWasDroppedReleasesItsReferences) {
  // Three references are on their way, one of them waits for its confirmation.
  begin();
  give_to_b(3);
  std::optional<Stream<RRef<Counter>>> stream = a().calls.rpc_stream("b", &give_all);
  deliver("a>b Call");
  deliver("b>a Item");
  EXPECT_EQ(a().rrefs.pending_user_count(), 1u);
  stream.reset();
  EXPECT_EQ(a().pending.size(), 0u);
  deliver_all();
  EXPECT_EQ(a().trace.marked("a value came after its stream was given up"), 2u);
  EXPECT_EQ(a().rrefs.user_count(), 0u);
  EXPECT_EQ(b().rrefs.pending_child_count(), 0u);
  static_cast<void>(a().calls.rpc_async("b", &forget));
  deliver_all();
  expect_nothing_left();
}

TEST_F(StreamValuesTest, AReferenceThatIsRefusedEndsTheStreamThere) {
  // a has lost the owner of the second value.
  begin();
  const RRef<Counter> here = a().calls.remote<Counter>("b", 7);
  static_cast<void>(a().calls.rpc_async("b", &keep, here));
  deliver_all();
  give_to_b(1);
  Stream<RRef<Counter>> stream = a().calls.with_credit(3).rpc_stream("b", &give_all);
  const Value first = stream.next_async();
  const Value second = stream.next_async();
  deliver("a>b Call");
  a().fence(2);
  deliver_all();
  deliver_while_waiting();
  EXPECT_EQ(first.wait()->rpc_sync(&Counter::get), 7);
  EXPECT_EQ(second.result().error().kind, ErrorKind::peer_lost);
  EXPECT_EQ(a().pending.size(), 0u);
  EXPECT_EQ(b().rrefs.pending_child_count(), 0u);
  check_invariants();
}

TEST_F(StreamValuesTest, AMethodGivesUpItsValueWhileItWaitsForItsReader) {
  begin();
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 0);
  Stream<int64_t> stream = a().calls.with_credit(1).rpc_stream(rref, &Counter::count, int64_t{3});
  std::vector<Future<int64_t>> sums;
  std::vector<Future<std::optional<int64_t>>> values;
  world.set_idle([&] {
    if (network.deliver_first()) return true;
    if (values.size() == 4) return false;
    if (sums.size() == values.size()) {
      sums.push_back(rref.rpc_async(&Counter::add, int64_t{100}));
    } else {
      EXPECT_TRUE(sums.back().ready());
      values.push_back(stream.next_async());
    }
    return true;
  });
  world.settle();
  // The method has added a second time when it begins to wait.
  EXPECT_EQ(values.at(0).wait(), 1);
  EXPECT_EQ(values.at(1).wait(), 2);
  EXPECT_EQ(sums.at(0).wait(), 102);
  EXPECT_EQ(values.at(2).wait(), 103);
  EXPECT_EQ(values.at(3).wait(), std::nullopt);
  std::vector<int64_t> counted;
  for (const int64_t number : rref.rpc_stream(&Counter::count, int64_t{2}))
    counted.push_back(number);
  EXPECT_EQ(counted.size(), 2u);
}

}  // namespace
}  // namespace rehearsal
