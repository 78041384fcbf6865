#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

struct Busy : std::runtime_error {
  using std::runtime_error::runtime_error;
  RRef<int64_t> by;
  friend void describe(Busy& thrown, auto&& fields) { fields(thrown.by); }
};

int64_t value_of(CallContext&, const RRef<int64_t>& rref) { return rref.to_here(); }
int64_t busy(const RRef<int64_t>& by) {
  Busy thrown("busy");
  thrown.by = by;
  throw thrown;
}
int64_t busy_here(CallContext& context, int64_t by) {
  Busy thrown("busy");
  if (by != 0) thrown.by = context.rref<int64_t>(by);  // Else it is empty.
  throw thrown;
}
int64_t passes(CallContext& context, int64_t by) { return context.rpc_sync("b", &busy_here, by); }
int64_t same(int64_t number) { return number; }

// References in exceptions: what is thrown is sent, adopted and released as a result is.
class ExceptionReferencesTest : public CallFixture {
 protected:
  void SetUp() override {
    registry.function("busy", &busy).function("busy_here", &busy_here);
    registry.function("passes", &passes).function("value_of", &value_of).function("same", &same);
    registry.exception<Busy>("Busy");
    begin();
  }
  void expect_nothing_left() {
    settle();
    for (const auto& node : nodes) {
      EXPECT_EQ(node->rrefs.owner_count(), 0u) << node->strand->name();
      EXPECT_EQ(node->rrefs.user_count(), 0u) << node->strand->name();
      EXPECT_EQ(node->rrefs.pending_child_count(), 0u) << node->strand->name();
    }
  }
};

TEST_F(ExceptionReferencesTest, AReferenceInAnExceptionKeepsItsValueAlive) {
  // Goal: owned by who throws, by a third worker, by the caller; used after it was caught.
  for (const std::string owner : {"b", "c", "a"}) {
    std::optional<Busy> caught;
    try {
      (void)a().calls.rpc_sync("b", &busy, a().calls.remote(owner, &same, 5));
    } catch (const Busy& thrown) {
      caught.emplace(thrown);
    }
    ASSERT_TRUE(caught.has_value()) << owner;
    settle();
    EXPECT_EQ(caught->by.owner_name(), owner);
    EXPECT_EQ(caught->by.to_here(), 5);
    EXPECT_EQ(a().calls.rpc_sync("c", &value_of, caught->by), 5);
    caught.reset();
    expect_nothing_left();
  }
}

TEST_F(ExceptionReferencesTest, ItPassesThroughAWorkerInBetween) {
  // Goal: two answers, two forks. Method: a calls c, which calls b, which throws.
  try {
    (void)a().calls.rpc_sync("c", &passes, 8);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Busy& thrown) {
    EXPECT_EQ(thrown.by.to_here(), 8);
    EXPECT_EQ(rehearsal::error_of(thrown)->chain, std::vector<std::string>{"c"});
  }
  expect_nothing_left();
}

TEST_F(ExceptionReferencesTest, AFailedCreationGivesItToEveryFetch) {
  {
    const RRef<int64_t> failed = a().calls.remote("b", &busy_here, 9);
    for (int fetch = 0; fetch < 2; ++fetch) {
      try {
        (void)failed.to_here();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Busy& thrown) {
        EXPECT_EQ(thrown.by.to_here(), 9);
      }
    }
  }
  expect_nothing_left();
}

TEST_F(ExceptionReferencesTest, AnUnwantedExceptionsReferencesAreReleased) {
  // Goal: an exception that comes after its call was given up leaves nothing behind.
  {
    const Future<int64_t> late =
        a().calls.with_timeout(std::chrono::milliseconds(1)).rpc_async("b", &busy_here, 5);
    world.pause(std::chrono::milliseconds(2));
    world.fire_due_timers();
    EXPECT_EQ(late.result().error().kind, ErrorKind::timeout);
  }
  expect_nothing_left();
}

TEST_F(ExceptionReferencesTest, AnEmptyReferenceIsSaidToBeWhyItCannotBeSent) {
  const Error error = error_of([&] { return a().calls.rpc_sync("b", &busy_here, 0); });
  EXPECT_NE(error.text.find("the Busy itself could not be sent: "), std::string::npos);
  EXPECT_NE(error.text.find("an empty reference cannot be sent"), std::string::npos);
  expect_nothing_left();
}

}  // namespace
}  // namespace rehearsal
