#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/core/rref/rref_fixture.h"

namespace rehearsal {
namespace {

using Texts = std::vector<std::string>;

static_assert(std::is_default_constructible_v<RRef<Counter>>);
static_assert(Sendable<RRef<Counter>>);
static_assert(Sendable<Bundle>);
static_assert(!Sendable<Counter>);

// A program's uses of references, on a network that delivers by itself.
class RRefUseTest : public RRefFixture {
 protected:
  void SetUp() override {
    begin();
    deliver_while_waiting();
  }
};

TEST_F(RRefUseTest, FetchesACopyOfTheValue) {
  const RRef<int64_t> rref = a().calls.remote("b", &answer, 41);
  EXPECT_EQ(rref.to_here(), 41);
  EXPECT_EQ(rref.to_here_async().wait(), 41);
  EXPECT_EQ(a().calls.to_here(rref), 41);
  const RRef<int64_t> mine = a().own<int64_t>(7);
  EXPECT_EQ(mine.to_here(), 7);
}

TEST_F(RRefUseTest, CallsMethodsWhereTheValueIs) {
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  EXPECT_EQ(rref.rpc_sync(&Counter::add, 2), 7);
  EXPECT_EQ(rref.rpc_async(&Counter::add, 3).wait(), 10);
  EXPECT_EQ(rref.remote(&Counter::add, 4).to_here(), 14);
  EXPECT_EQ(a().calls.rpc_sync(rref, &Counter::get), 14);
  EXPECT_EQ(a().calls.rpc_async(rref, &Counter::get).wait(), 14);
  EXPECT_EQ(a().calls.remote(rref, &Counter::get).to_here(), 14);
}

TEST_F(RRefUseTest, AReferenceToAReferenceWorks) {
  // The value at b is itself a reference, to a value at b; fetching it makes a fork for a.
  const RRef<RRef<Counter>> outer = a().calls.remote("b", &own, 3);
  const RRef<Counter> inner = outer.to_here();
  EXPECT_EQ(inner.owner_name(), "b");
  EXPECT_EQ(inner.rpc_sync(&Counter::get), 3);
}

TEST_F(RRefUseTest, ReferencesAreEqualIfTheyNameTheSameValue) {
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  const RRef<Counter> copy = rref;
  const RRef<Counter> other = a().calls.remote<Counter>("b", 5);
  EXPECT_EQ(rref, copy);
  EXPECT_FALSE(rref == other);
  EXPECT_EQ(RRef<Counter>(), RRef<Counter>());
  EXPECT_FALSE(rref == RRef<Counter>());
}

TEST_F(RRefUseTest, AnEmptyReferenceIsRefusedEverywhere) {
  const RRef<Counter> empty;
  EXPECT_FALSE(empty.valid());
  for (const Error& error : {error_of([&] { return empty.rpc_sync(&Counter::get); }),
                             error_of([&] { return empty.rpc_async(&Counter::get); }),
                             error_of([&] { return empty.remote(&Counter::get); }),
                             error_of([&] { return a().calls.rpc_sync(empty, &Counter::get); }),
                             error_of([&] { return empty.owner_name(); }),
                             error_of([&] { return empty.local_value().get(); }),
                             error_of([&] { return RRef<int64_t>().to_here(); }),
                             error_of([&] { return a().calls.rpc_sync("b", &keep, empty); })}) {
    EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
    EXPECT_NE(error.text.find("empty"), std::string::npos);
  }
}

TEST_F(RRefUseTest, TheValueItselfIsAtItsOwnerOnly) {
  const RRef<Counter> theirs = a().calls.remote<Counter>("b", 5);
  const Error error = error_of([&] { return theirs.local_value().get(); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_NE(error.text.find("it lives at 'b' (use to_here)"), std::string::npos);
  const RRef<Counter> mine = a().calls.remote<Counter>("a", 6);
  EXPECT_EQ(mine.local_value().get(), 6);
}

TEST_F(RRefUseTest, AValueOfAnotherTypeThanTheMethodOrTheReferenceIsRefused) {
  const RRef<int64_t> number = a().calls.remote("b", &answer, 1);
  const RRef<Counter> wrong(number.shared_handle());
  EXPECT_EQ(error_of([&] { return wrong.rpc_sync(&Counter::get); }).kind, ErrorKind::bad_arguments);
  const RRef<Counter> wrong_here(a().own<int64_t>(1).shared_handle());
  EXPECT_EQ(error_of([&] { return wrong_here.local_value().get(); }).kind,
            ErrorKind::bad_arguments);
}

TEST_F(RRefUseTest, AValueThatCannotBeSentStaysWhereItIs) {
  // It can be made; a fetch says why it cannot be had.
  const auto rref = a().calls.remote("b", &unsendable, 4);
  const RRef<int64_t> as_number(rref.shared_handle());
  const Error error = error_of([&] { return as_number.to_here(); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(error.worker, "b");
  EXPECT_EQ(stage_.alive, 1);
}

TEST_F(RRefUseTest, ConstructorsAreChosenByTheirArguments) {
  EXPECT_EQ(a().calls.remote<Counter>("b", int8_t{3}).rpc_sync(&Counter::get), 3);
  const Error error = error_of([&] { return a().calls.remote<Counter>("b", "text"); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_NE(error.text.find("there are: Counter(int64,)"), std::string::npos);
}

// ---- monitors ----

TEST_F(RRefUseTest, AMethodGivesUpItsValueWhileItWaits) {
  // Two slow methods: the second enters while the first waits for c, which answers it first.
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 0);
  const Future<int64_t> first = rref.rpc_async(&Counter::add_slowly, std::string("c"), 1);
  const Future<int64_t> second = rref.rpc_async(&Counter::add_slowly, std::string("c"), 2);
  world.set_idle([this] {
    // Of the calls to c the first waits until the second is out; all else is delivered in order.
    const bool second_is_out = std::ranges::count(stage_.log, "out 2") > 0;
    bool first = !second_is_out;
    for (size_t at = 0; at < network.in_flight().size(); ++at) {
      if (text_of(network.in_flight()[at]) == "b>c Call" && std::exchange(first, false)) continue;
      network.deliver(at);
      return true;
    }
    return false;
  });
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(stage_.log, (Texts{"in 1", "in 2", "out 2", "out 1"}));
  EXPECT_EQ(rref.rpc_sync(&Counter::get), 3);
}

TEST_F(RRefUseTest, WhenTheNodeHasEndedNoMethodStartsAnyMore) {
  // The node ends while one method runs and another waits for its turn. The first fails to wait;
  // the second must not start: it would wait for its turn for ever.
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 0);
  stage_.on_entered = [this] {
    b().runtime->post([this] { b().strand->close({.kind = ErrorKind::node_stopped}); });
  };
  const Future<int64_t> first = rref.rpc_async(&Counter::add_slowly, std::string("c"), 1);
  const Future<int64_t> second = rref.rpc_async(&Counter::add_slowly, std::string("c"), 2);
  deliver_all();
  EXPECT_EQ(stage_.log, Texts{"in 1"});
  EXPECT_FALSE(first.ready());
  EXPECT_FALSE(second.ready());
}

TEST_F(RRefUseTest, LocalCodeGivesUpTheValueWhileItWaits) {
  // Inside, b calls a method of the same value and waits for it: no deadlock.
  const RRef<Counter> rref = b().calls.remote<Counter>("b", 1);
  const int64_t sum = rref.with_local([&](Counter& counter) {
    counter.add(1);
    return rref.rpc_sync(&Counter::add, 5);
  });
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(b().main->monitor, nullptr);
}

TEST_F(RRefUseTest, AMethodMayEnterTheValueThatItIsIn) {
  const RRef<Counter> rref = b().calls.remote<Counter>("b", 1);
  EXPECT_EQ(rref.rpc_sync(&Counter::enter_twice, rref), 101);
  EXPECT_EQ(rref.rpc_sync(&Counter::add, 1), 102);
}

TEST_F(RRefUseTest, AnExceptionLeavesTheMonitor) {
  const RRef<Counter> rref = b().calls.remote<Counter>("b", 1);
  EXPECT_THROW(rref.with_local([](Counter&) { throw 5; }), int);
  EXPECT_EQ(rref.rpc_sync(&Counter::get), 1);
  EXPECT_EQ(rref.rpc_sync(&Counter::add, 1), 2);
}

}  // namespace
}  // namespace rehearsal
