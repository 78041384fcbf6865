#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/rref/rref_fixture.h"

namespace rehearsal {
namespace {

using Texts = std::vector<std::string>;

// The exactness rules of creation, deletion, pins and the gate, a test or more each.
class RRefRulesTest : public RRefFixture {
 protected:
  RRef<Counter> made() {
    RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
    deliver_all();
    return rref;
  }
};

// ---- rule 1: to come, alive, gone ----

TEST_F(RRefRulesTest, ACreationIsAnsweredWhenTheOwnerExistsNotWhenItsValueDoes) {
  // The constructor has not run when the confirmation leaves.
  begin();
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  put_back(hold("a>b Call"));
  network.deliver(0);
  EXPECT_EQ(in_flight(), (Texts{"b>a ForkConfirm"}));
  EXPECT_EQ(stage_.alive, 0);
  world.settle();
  EXPECT_EQ(stage_.alive, 1);
}

TEST_F(RRefRulesTest, AForkRequestThatOvertakesTheCreationWaitsForIt) {
  begin();
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  const Future<int64_t> kept = a().calls.rpc_async("c", &keep, rref);
  deliver("a>c Call");
  deliver("c>b ForkRequest");
  EXPECT_EQ(b().trace.marked("a use waits for its reference to be created"), 1u);
  EXPECT_EQ(in_flight(), (Texts{"a>b Call"}));
  deliver("a>b Call");
  EXPECT_EQ(in_flight(), (Texts{"b>a ForkConfirm", "b>c ForkConfirm"}));
  EXPECT_EQ(b().rrefs.fork_count(), 2u);
  deliver_all();
  EXPECT_EQ(kept.wait(), 1);
}

TEST_F(RRefRulesTest, AFetchAndAProxyCallThatOvertakeTheCreationWaitForIt) {
  begin(2);
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  const auto creation = hold("a>b Call");
  const Future<int64_t> sum = rref.rpc_async(&Counter::add, 2);
  deliver("a>b Call");
  EXPECT_EQ(b().trace.marked("a use waits for its reference to be created"), 1u);
  EXPECT_TRUE(in_flight().empty());
  put_back(creation);
  deliver_all();
  EXPECT_EQ(sum.wait(), 7);
}

TEST_F(RRefRulesTest, ADeleteThatIsFollowedByAUseRefusesItAtOnce) {
  // Once gone, an id never waits: made by hand, since an honest holder cannot do it.
  begin(2);
  std::optional<RRef<Counter>> rref = made();
  const RRefId id = rref->shared_handle()->id();
  rref.reset();
  deliver_all();
  Draft draft = a().caller->draft("b");
  draft.call.kind = CallKind::fetch;
  draft.call.target = id;
  deliver_while_waiting();
  EXPECT_EQ(a().answer_to(std::move(draft)).error().kind, ErrorKind::rref_deleted);
}

TEST_F(RRefRulesTest, TheLossOfTheCreatorRefusesWhatWaitsForItAndWhatAsksLater) {
  // c's request waits for a creation of a that will never come.
  begin();
  const RRef<Counter> first = a().calls.remote<Counter>("b", 5);
  const RRef<Counter> second = a().calls.remote<Counter>("b", 6);
  const Future<int64_t> waiting = a().calls.rpc_async("c", &keep, first);
  const Future<int64_t> later = a().calls.rpc_async("c", &keep, second);
  deliver("a>c Call");
  deliver("c>b ForkRequest");
  EXPECT_EQ(b().rrefs.describe_awaited(), "'c' waits for a value that 'a' has not created");
  network.cut(0, 1);
  b().fence(0, "silent");
  EXPECT_EQ(b().rrefs.describe_awaited(), "");
  deliver("b>c ForkConfirm");
  deliver_all();
  EXPECT_EQ(waiting.result().error().kind, ErrorKind::peer_lost);
  EXPECT_EQ(waiting.result().error().worker, "a");
  EXPECT_EQ(later.result().error().kind, ErrorKind::peer_lost);
  EXPECT_TRUE(stage_.log.empty());
  EXPECT_EQ(b().rrefs.owner_count(), 0u);
}

TEST_F(RRefRulesTest, AValueThatComesByAnotherNameRefusesWhoWaitsForItsNumber) {
  // The asker has been told a false name: a's first value here is called otherwise. Its use ends
  // when that value comes, not when a is lost.
  begin();
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  RRefId false_name = rref.shared_handle()->id();
  false_name.causal.ordinal += 1000;
  Call fetch{.id = CallId{{c().incarnation(), {1, 1}, 1}}, .kind = CallKind::fetch};
  fetch.target = false_name;
  b().runtime->post([&] { b().served.on_call(WorkerId{2}, Call(fetch)); });
  EXPECT_EQ(b().rrefs.awaited_count(), 1u);
  EXPECT_EQ(in_flight(), (Texts{"a>b Call"}));
  deliver("a>b Call");
  EXPECT_EQ(b().trace.marked("a value was created by another name than a use waits for"), 1u);
  EXPECT_EQ(b().rrefs.awaited_count(), 0u);
  EXPECT_EQ(in_flight(), (Texts{"b>a ForkConfirm", "b>c Response"}));
  EXPECT_FALSE(b().sessions.lost(WorkerId{2}));
}

TEST_F(RRefRulesTest, ARefusedCreationMakesAnOwnerThatHoldsTheError) {
  // The function throws, and one that does not exist: confirmed, every use gives the error.
  begin(2);
  const RRef<int64_t> thrown = a().calls.remote("b", &fail, 1);
  Draft unknown = function_draft(*a().caller, "b", &answer, 1);
  unknown.call.function = 999;
  const RRef<int64_t> refused(a().rrefs.create(std::move(unknown)));
  deliver_all();
  EXPECT_TRUE(thrown.confirmed_by_owner());
  EXPECT_TRUE(refused.confirmed_by_owner());
  deliver_while_waiting();
  for (int again = 0; again < 2; ++again) {
    const Error error = error_of([&] { return thrown.to_here(); });
    EXPECT_EQ(error.kind, ErrorKind::remote_exception);
    EXPECT_EQ(error.function, "fail");
    EXPECT_EQ(error_of([&] { return refused.to_here(); }).kind, ErrorKind::unknown_function);
  }
}

TEST_F(RRefRulesTest, ACreationForAnotherIsIgnoredAndOneThatComesTwiceFencesItsSender) {
  begin(2);
  const RRef<Counter> rref = made();
  Call again{.id = CallId{{a().incarnation(), {1, 1}, 1}}};
  again.created = rref.shared_handle()->id();
  Call foreign = again;
  foreign.created->causal.incarnation = {4711};
  foreign.created->counter = 50;
  b().runtime->post([&] { b().served.on_call(WorkerId{0}, Call(foreign)); });
  EXPECT_EQ(b().trace.marked("a creation came for an id that is not to come"), 1u);
  EXPECT_EQ(b().rrefs.owner_count(), 1u);
  EXPECT_FALSE(b().sessions.lost(WorkerId{0}));
  b().runtime->post([&] { b().served.on_call(WorkerId{0}, Call(again)); });
  ASSERT_TRUE(b().sessions.lost(WorkerId{0}));
  EXPECT_EQ(b().sessions.lost(WorkerId{0})->kind, ErrorKind::protocol);
  EXPECT_NE(b().sessions.lost(WorkerId{0})->text.find("Call.created"), std::string::npos);
  EXPECT_EQ(b().rrefs.owner_count(), 0u);
}

// ---- rule 2: deletion ----

TEST_F(RRefRulesTest, ADeleteNeverOvertakesTheRegistration) {
  begin(2);
  { const RRef<Counter> rref = a().calls.remote<Counter>("b", 5); }
  EXPECT_EQ(in_flight(), (Texts{"a>b Call"}));
  deliver("a>b Call");
  EXPECT_EQ(in_flight(), (Texts{"b>a ForkConfirm"}));
  deliver("b>a ForkConfirm");
  EXPECT_EQ(in_flight(), (Texts{"a>b UserDelete"}));
  deliver_all();
  expect_nothing_left();
}

TEST_F(RRefRulesTest, AfterATimeOutTheDeleteStillWaitsForTheAnswer) {
  begin(2);
  {
    const RRef<Counter> rref =
        a().calls.with_timeout(std::chrono::milliseconds(10)).remote<Counter>("b", 5);
    world.set_idle(nullptr);
    world.advance(std::chrono::milliseconds(10));
    EXPECT_EQ(a().trace.marked("a creation timed out"), 1u);
    deliver_while_waiting();
    EXPECT_EQ(error_of([&] { return rref.rpc_sync(&Counter::get); }).kind, ErrorKind::timeout);
    world.set_idle(nullptr);
  }
  EXPECT_EQ(in_flight(), (Texts{"a>b Call"}));
  deliver_all();
  expect_nothing_left();
}

TEST_F(RRefRulesTest, WithTheSwitchADeleteDoesNotWait) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  mutants.turn_on(Mutant::delete_before_answer);
  begin(2);
  { const RRef<Counter> rref = a().calls.remote<Counter>("b", 5); }
  EXPECT_EQ(in_flight(), (Texts{"a>b Call", "a>b UserDelete"}));
}

// ---- rule 3: pins ----

TEST_F(RRefRulesTest, ATimeOutOrACancellationUndoesNoPin) {
  begin();
  std::optional<RRef<Counter>> rref = made();
  const Future<int64_t> kept =
      a().calls.with_timeout(std::chrono::milliseconds(10)).rpc_async("c", &keep, *rref);
  rref.reset();
  world.advance(std::chrono::milliseconds(10));
  EXPECT_EQ(kept.result().error().kind, ErrorKind::timeout);
  EXPECT_EQ(a().rrefs.pending_child_count(), 1u);
  EXPECT_EQ(a().rrefs.user_count(), 1u);
  deliver_all();
  stage_.kept.clear();
  deliver_all();
  expect_nothing_left();
}

TEST_F(RRefRulesTest, ACallThatNeverLeftUndoesItsPins) {
  // The window is full; the call that waits for room times out and takes its forks back.
  window_frames = 2;
  begin();
  const RRef<Counter> rref = made();
  const RRef<Counter> mine = a().calls.remote<Counter>("a", 1);
  deliver_all();
  for (int i = 0; i < 2; ++i) (void)a().calls.rpc_async("c", &answer, i);
  const Future<int64_t> kept =
      a().calls.with_timeout(std::chrono::milliseconds(1)).rpc_async("c", &keep_two, rref, mine);
  EXPECT_EQ(a().rrefs.pending_child_count(), 1u);
  EXPECT_EQ(a().rrefs.fork_count(), 1u);
  world.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(kept.result().error().kind, ErrorKind::timeout);
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  EXPECT_EQ(a().rrefs.fork_count(), 0u);
  deliver_all();
  EXPECT_TRUE(stage_.log.empty());
}

TEST_F(RRefRulesTest, WhatCannotBePreparedMakesNothing) {
  // One of two references cannot be used: neither is forked, nothing is sent.
  begin();
  const RRef<Counter> good = made();
  const RRef<Counter> bad = a().calls.remote<Counter>("c", 1);
  a().fence(2, "silent");
  deliver_all();
  deliver_while_waiting();
  const Error error = error_of([&] { return a().calls.rpc_sync("b", &keep_two, good, bad); });
  EXPECT_EQ(error.kind, ErrorKind::peer_lost);
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  EXPECT_TRUE(in_flight().empty());
}

TEST_F(RRefRulesTest, FencingAHolderReleasesItsPins) {
  // Also when its frame was acknowledged.
  begin();
  std::optional<RRef<Counter>> rref = made();
  (void)a().calls.rpc_async("c", &keep, *rref);
  deliver("a>c Call");
  world.advance(std::chrono::milliseconds(5));
  rref.reset();
  a().fence(2, "silent");
  world.settle();
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  EXPECT_EQ(a().rrefs.user_count(), 0u);
}

TEST_F(RRefRulesTest, WithTheSwitchPinsSurviveFencing) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  mutants.turn_on(Mutant::pins_survive_fencing);
  begin();
  const RRef<Counter> rref = made();
  (void)a().calls.rpc_async("c", &keep, rref);
  a().fence(2, "silent");
  EXPECT_EQ(a().rrefs.pending_child_count(), 1u);
}

// ---- rule 4: the gate ----

TEST_F(RRefRulesTest, AFunctionStartsWhenAllItsReferencesAreConfirmed) {
  // Two references of two owners: it starts at the second confirmation, whichever that is.
  begin();
  const RRef<Counter> at_b = a().calls.remote<Counter>("b", 1);
  const RRef<Counter> at_a = a().calls.remote<Counter>("a", 2);
  deliver_all();
  const Future<int64_t> kept = a().calls.rpc_async("c", &keep_two, at_b, at_a);
  deliver("a>c Call");
  EXPECT_TRUE(stage_.log.empty());
  deliver("c>b ForkRequest");
  EXPECT_TRUE(stage_.log.empty());
  deliver("b>c ForkConfirm");
  EXPECT_EQ(stage_.log.size(), 2u);
  deliver_all();
  EXPECT_EQ(kept.wait(), 2);
}

TEST_F(RRefRulesTest, WithTheSwitchAFunctionDoesNotWait) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  mutants.turn_on(Mutant::no_confirmation_gate);
  begin();
  const RRef<Counter> rref = made();
  (void)a().calls.rpc_async("c", &keep, rref);
  deliver("a>c Call");
  EXPECT_EQ(stage_.log, (Texts{"keep at c"}));
}

TEST_F(RRefRulesTest, AResultIsGivenToItsCallerWhenItsReferencesAreConfirmed) {
  // b's answer carries a reference owned by c; a may not see it before c has confirmed.
  begin();
  stage_.kept["b"].push_back(b().calls.remote<Counter>("c", 3));
  deliver_all();
  Future<RRef<Counter>> given = a().calls.rpc_async("b", &give);
  deliver("a>b Call");
  deliver("b>a Response");
  EXPECT_FALSE(given.ready());
  deliver("a>c ForkRequest");
  EXPECT_FALSE(given.ready());
  deliver("c>a ForkConfirm");
  EXPECT_TRUE(given.ready());
  EXPECT_TRUE(given.wait().confirmed_by_owner());
  deliver_all();
  EXPECT_EQ(b().rrefs.pending_child_count(), 0u);
}

TEST_F(RRefRulesTest, ReferencesInsideValuesObeyTheSameRules) {
  // A struct with an optional, a list and a map of references, as argument and as result.
  begin();
  const RRef<Counter> rref = made();
  const Future<int64_t> kept = a().calls.rpc_async(
      "c", &keep_bundle, Bundle{.maybe = rref, .list = {rref, rref}, .named = {{"n", rref}}});
  EXPECT_EQ(a().rrefs.pending_child_count(), 4u);
  deliver("a>c Call");
  for (int i = 0; i < 3; ++i) deliver("c>b ForkRequest");
  for (int i = 0; i < 3; ++i) deliver("b>c ForkConfirm");
  EXPECT_TRUE(stage_.log.empty());
  deliver_all();
  EXPECT_EQ(kept.wait(), 4);
  deliver_while_waiting();
  const Bundle bundle = a().calls.rpc_sync("c", &give_bundle);
  EXPECT_EQ(*bundle.maybe, rref);
  EXPECT_EQ(bundle.list.at(1).rpc_sync(&Counter::get), 5);
  EXPECT_EQ(bundle.named.at("one").rpc_sync(&Counter::get), 5);
}

TEST_F(RRefRulesTest, OneRefusedReferenceFailsTheGateAndTheOthersAreReleased) {
  // b refuses; the reference owned by c itself has yet to come when the gate fails.
  begin();
  const RRef<Counter> at_b = made();
  const RRef<Counter> at_c = a().calls.remote<Counter>("c", 2);
  const auto creation = hold("a>c Call");
  const Future<int64_t> kept = a().calls.rpc_async("c", &keep_two, at_c, at_b);
  b().fence(0, "silent");
  deliver("a>c Call");
  deliver("c>b ForkRequest");
  deliver("b>c ForkConfirm");
  EXPECT_EQ(c().served.size(), 0u);
  put_back(creation);
  deliver_all();
  EXPECT_EQ(kept.result().error().kind, ErrorKind::rref_deleted);
  EXPECT_EQ(c().rrefs.handle_count(), 0u);
  EXPECT_EQ(c().rrefs.fork_count(), 1u);
}

}  // namespace
}  // namespace rehearsal
