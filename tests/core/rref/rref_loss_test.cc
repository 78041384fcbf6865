#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/rref/rref_fixture.h"
#include "tests/core/wire/ready_message.h"

namespace rehearsal {
namespace {

using Texts = std::vector<std::string>;

// Lost workers, failed creations, uses in flight, and the end.
class RRefLossTest : public RRefFixture {
 protected:
  RRef<Counter> made() {
    RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
    deliver_all();
    return rref;
  }
};

// ---- rule 5: lost workers ----

TEST_F(RRefLossTest, HandlesOfALostOwnerAnswerSo) {
  begin();
  const RRef<Counter> rref = made();
  a().fence(1, "silent");
  for (const Error& error : {error_of([&] { return rref.rpc_sync(&Counter::get); }),
                             error_of([&] { return rref.rpc_async(&Counter::get).wait(); }),
                             error_of([&] { return a().calls.rpc_sync("c", &keep, rref); })}) {
    EXPECT_EQ(error.kind, ErrorKind::peer_lost);
    EXPECT_EQ(error.worker, "b");
  }
  const RRef<int64_t> made_by_it = rref.remote(&Counter::get);
  EXPECT_EQ(error_of([&] { return made_by_it.to_here(); }).kind, ErrorKind::peer_lost);
  EXPECT_FALSE(made_by_it.confirmed_by_owner());
}

TEST_F(RRefLossTest, WhatTheOwnerHasConfirmedStaysConfirmedWhenItIsLost) {
  // Found by `hunt storm --seeds 20000 --faults hostile --crashes 1`, seed 13932: the owner was
  // lost between the answer that opened the gate and the start of the user's function.
  begin();
  const RRef<Counter> rref = made();
  EXPECT_TRUE(rref.confirmed_by_owner());
  a().fence(1, "silent");
  EXPECT_TRUE(rref.confirmed_by_owner());
}

TEST_F(RRefLossTest, WhatTheOwnerHasConfirmedStaysConfirmedWhenItIsReleased) {
  // A function that still runs at the shutdown has a handle of what the shutdown has released.
  begin();
  const RRef<Counter> rref = made();
  const RRef<Counter> lost = a().calls.remote<Counter>("c", 1);
  a().fence(2, "silent");
  a().runtime->post([&] { (void)a().rrefs.release_all(); });
  EXPECT_TRUE(rref.confirmed_by_owner());
  EXPECT_FALSE(lost.confirmed_by_owner());
  EXPECT_EQ(error_of([&] { return rref.rpc_sync(&Counter::get); }).kind, ErrorKind::rref_deleted);
  deliver_all();
}

TEST_F(RRefLossTest, ForksOfAFencedHolderAreReclaimed) {
  begin();
  const RRef<Counter> rref = made();
  EXPECT_EQ(stage_.alive, 1);
  b().fence(0, "silent");
  EXPECT_EQ(b().rrefs.owner_count(), 0u);
  EXPECT_EQ(stage_.alive, 0);
  deliver_all();
  EXPECT_EQ(error_of([&] { return rref.rpc_sync(&Counter::get); }).kind, ErrorKind::fenced);
}

TEST_F(RRefLossTest, AForkThatALostHolderPassedOnStandsForItself) {
  // c's request arrives when b has reclaimed a's fork, but another of c's keeps the value.
  begin();
  const RRef<Counter> rref = made();
  (void)a().calls.rpc_async("c", &keep, rref);
  deliver_all();
  (void)a().calls.rpc_async("c", &keep, rref);
  deliver("a>c Call");
  b().fence(0, "silent");
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
  deliver("c>b ForkRequest");
  deliver("b>c ForkConfirm");
  EXPECT_EQ(stage_.kept.at("c").size(), 2u);
  EXPECT_EQ(b().rrefs.fork_count(), 2u);
}

TEST_F(RRefLossTest, ARequestOfAFormerLifeRegistersNothingForTheNewOne) {
  // c asks for a fork of what a has yet to create, and restarts before the creation arrives.
  begin();
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  const auto creation = hold("a>b Call");
  (void)a().calls.rpc_async("c", &keep, rref);
  deliver("a>c Call");
  deliver("c>b ForkRequest");
  restart(2);
  put_back(creation);
  deliver("a>b Call");
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
  deliver_all();
}

TEST_F(RRefLossTest, ANewLifeOfTheOwnerKnowsNothingOfTheOldOnesReferences) {
  // A reference to b's former life travels from a to c, which knows b's new life only.
  begin();
  const RRef<Counter> rref = made();
  const Future<int64_t> kept = a().calls.rpc_async("c", &keep, rref);
  const auto call = hold("a>c Call");
  restart(1);
  put_back(call);
  deliver("a>c Call");
  EXPECT_EQ(c().trace.marked("a fork arrived whose owner is lost"), 1u);
  deliver_all();
  EXPECT_EQ(kept.result().error().kind, ErrorKind::peer_lost);
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  const Error fenced = error_of([&] { return rref.rpc_sync(&Counter::get); });
  EXPECT_EQ(fenced.kind, ErrorKind::fenced);
  EXPECT_NE(fenced.text.find("of a former life of 'b'"), std::string::npos) << fenced.text;
  // References made from now on count from zero again.
  const RRef<Counter> fresh = a().calls.remote<Counter>("b", 1);
  deliver_all();
  EXPECT_EQ(fresh.shared_handle()->id().counter, 0u);
  EXPECT_TRUE(fresh.confirmed_by_owner());
}

// ---- rule 6: creations that failed ----

TEST_F(RRefLossTest, ACreationThatTimedOutGivesThatErrorBeforeAndAfter) {
  begin(2);
  std::optional<RRef<Counter>> rref =
      a().calls.with_timeout(std::chrono::milliseconds(20)).remote<Counter>("b", 5);
  world.advance(std::chrono::milliseconds(20));
  EXPECT_EQ(error_of([&] { return rref->rpc_sync(&Counter::get); }).kind, ErrorKind::timeout);
  deliver_all();
  EXPECT_EQ(error_of([&] { return rref->rpc_sync(&Counter::get); }).kind, ErrorKind::timeout);
  EXPECT_EQ(stage_.alive, 1);
  rref.reset();
  deliver_all();
  expect_nothing_left();
}

TEST_F(RRefLossTest, AUseOnItsWayGivesTheTimeOutOfItsCreation) {
  // Goal: what is asked before a creation times out gives what is asked after it. Method: uses with
  // time of their own; the creation arrives late, and its value is there when they would ask.
  begin(2);
  const RRef<Counter> rref =
      a().calls.with_timeout(std::chrono::milliseconds(20)).remote<Counter>("b", 5);
  const Calls patient = a().calls.with_timeout(std::chrono::seconds(100));
  const Future<int64_t> used = patient.rpc_async(rref, &Counter::get);
  const Future<Unit> created = rref.created();
  EXPECT_FALSE(used.ready());
  world.advance(std::chrono::milliseconds(20));
  ASSERT_TRUE(used.ready());
  EXPECT_EQ(used.result().error().kind, ErrorKind::timeout);
  ASSERT_TRUE(created.ready());
  EXPECT_EQ(created.result().error().kind, ErrorKind::timeout);
  EXPECT_EQ(a().pending.size(), 0u);
  deliver_all();
  EXPECT_EQ(used.result().error().kind, ErrorKind::timeout);
}

TEST_F(RRefLossTest, AnEarlierErrorIsNotReplacedByTheLossOfTheOwner) {
  begin(2);
  const RRef<Counter> rref =
      a().calls.with_timeout(std::chrono::milliseconds(20)).remote<Counter>("b", 5);
  world.advance(std::chrono::milliseconds(20));
  a().fence(1, "silent");
  EXPECT_EQ(error_of([&] { return rref.rpc_sync(&Counter::get); }).kind, ErrorKind::timeout);
}

TEST_F(RRefLossTest, ACreationAtALostWorkerFailsWithoutBeingSent) {
  begin(2);
  a().fence(1, "silent");
  deliver_all();
  std::optional<RRef<Counter>> rref = a().calls.remote<Counter>("b", 5);
  EXPECT_TRUE(in_flight().empty());
  EXPECT_EQ(error_of([&] { return rref->rpc_sync(&Counter::get); }).kind, ErrorKind::peer_lost);
  rref.reset();
  EXPECT_EQ(a().rrefs.user_count(), 0u);
}

TEST_F(RRefLossTest, AnAnsweredCreationLeavesNoDeadline) {
  begin(2);
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  EXPECT_EQ(a().deadlines.size(), 1u);
  deliver_all();
  EXPECT_EQ(a().deadlines.size(), 0u);
}

TEST_F(RRefLossTest, ACreationAtOneselfTakesTheSamePath) {
  begin(1);
  std::optional<RRef<Counter>> rref = a().calls.remote<Counter>("a", 5);
  EXPECT_TRUE(rref->is_owner());
  EXPECT_EQ(rref->rpc_sync(&Counter::add, 3), 8);
  const RRef<int64_t> failed = a().calls.remote("a", &fail, 1);
  EXPECT_EQ(error_of([&] { return failed.to_here(); }).kind, ErrorKind::remote_exception);
  EXPECT_EQ(rref->local_value().get(), 8);
  rref.reset();
  deliver_all();
  EXPECT_EQ(stage_.alive, 0);
}

// ---- rule 7: uses in flight ----

TEST_F(RRefLossTest, ACallInFlightHoldsItsReference) {
  // The handle dies; the delete leaves only when the answer is there.
  begin(2);
  std::optional<RRef<Counter>> rref = made();
  const Future<int64_t> sum = rref->rpc_async(&Counter::add, 1);
  rref.reset();
  EXPECT_EQ(in_flight(), (Texts{"a>b Call"}));
  deliver("a>b Call");
  EXPECT_EQ(in_flight(), (Texts{"b>a Response"}));
  deliver("b>a Response");
  EXPECT_EQ(sum.wait(), 6);
  EXPECT_EQ(in_flight(), (Texts{"a>b UserDelete"}));
  deliver_all();
  expect_nothing_left();
}

TEST_F(RRefLossTest, AMethodThatCreatesHoldsItsTargetUntilItIsAnswered) {
  begin(2);
  std::optional<RRef<Counter>> rref = made();
  std::optional<RRef<int64_t>> sum = rref->remote(&Counter::add, 1);
  rref.reset();
  EXPECT_EQ(in_flight(), (Texts{"a>b Call"}));
  deliver_all();
  deliver_while_waiting();
  EXPECT_EQ(sum->to_here(), 6);
  sum.reset();
  deliver_all();
  expect_nothing_left();
}

TEST_F(RRefLossTest, ACallThatHasArrivedHoldsItsTargetThroughItsGate) {
  // The creation is confirmed while its argument waits at the gate: the target's only handle dies.
  begin();
  std::optional<RRef<Counter>> target = made();
  std::optional<RRef<Counter>> argument = a().calls.remote<Counter>("c", 1);
  deliver_all();
  const RRef<int64_t> entered = target->remote(&Counter::enter_twice, *argument);
  target.reset();
  deliver("a>b Call");
  deliver("b>a ForkConfirm");
  deliver("a>b UserDelete");
  EXPECT_EQ(b().rrefs.owner_count(), 2u);
  deliver_all();
  deliver_while_waiting();
  // The method ran: it was refused only what is not at b.
  EXPECT_EQ(error_of([&] { return entered.to_here(); }).kind, ErrorKind::bad_arguments);
  world.set_idle(nullptr);
  EXPECT_EQ(b().rrefs.owner_count(), 1u);
}

TEST_F(RRefLossTest, AUseThatWasGivenUpLetsGoOfItsReference) {
  begin(2);
  std::optional<RRef<Counter>> rref = made();
  (void)a().caller->start_typed<int64_t>([&] {
    Draft draft = method_draft<Counter>(rref->shared_handle(), &Counter::get);
    draft.timeout = std::chrono::milliseconds(5);
    return draft;
  }());
  rref.reset();
  world.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(in_flight(), (Texts{"a>b Call", "a>b Cancel", "a>b UserDelete"}));
  deliver_all();
  expect_nothing_left();
}

TEST_F(RRefLossTest, AReplacedCallStillGivesItsReferencesToTheCallee) {
  // The tensor is changed before the call is resent: the call fails, its pins are released.
  begin();
  const RRef<Counter> rref = made();
  const at::Tensor tensor = at::zeros({10000});
  Draft draft = function_draft(*a().caller, "c", &keep, rref);
  draft.call.arguments.tensors.push_back(tensor);
  make_ready(draft.call.arguments);
  const Future<int64_t> kept = a().caller->start_typed<int64_t>(std::move(draft));
  tensor.fill_(1);
  network.cut(0, 2);
  network.connect(0, 2);
  EXPECT_EQ(kept.result().error().kind, ErrorKind::bad_arguments);
  EXPECT_EQ(kept.result().error().function, "keep");
  deliver_all();
  EXPECT_TRUE(stage_.log.empty());
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  EXPECT_EQ(c().rrefs.user_count(), 0u);
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
}

TEST_F(RRefLossTest, AReplacedCreationMakesAnOwnerThatHoldsTheError) {
  begin();
  const RRef<Counter> rref = made();
  const at::Tensor tensor = at::zeros({10000});
  Draft draft = function_draft(*a().caller, "c", &keep, rref);
  draft.call.arguments.tensors.push_back(tensor);
  make_ready(draft.call.arguments);
  std::optional<RRef<int64_t>> created(RRef<int64_t>(a().rrefs.create(std::move(draft))));
  const Future<int64_t> fetched = created->to_here_async();
  tensor.fill_(1);
  network.cut(0, 2);
  network.connect(0, 2);
  const Error error = error_of([&] { return created->to_here(); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_NE(error.text.find("changed in place"), std::string::npos);
  deliver_all();
  // The owner answers what was asked before.
  ASSERT_TRUE(fetched.ready());
  EXPECT_EQ(fetched.result().error().kind, ErrorKind::bad_arguments);
  EXPECT_EQ(fetched.result().error().worker, "a");
  EXPECT_EQ(fetched.result().error().text, error.text);
  EXPECT_EQ(c().rrefs.owner_count(), 1u);
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  created.reset();
  deliver_all();
  EXPECT_EQ(c().rrefs.owner_count(), 0u);
}

// ---- rule 8: the end ----

TEST_F(RRefLossTest, AtTheEndRemainingHandlesAreReleasedAndReported) {
  begin(2);
  const RRef<Counter> rref = made();
  const RRef<Counter> mine = a().calls.remote<Counter>("a", 2);
  deliver_all();
  std::vector<std::string> lines;
  a().runtime->post([&] { lines = a().rrefs.release_all(); });
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("'a' holds a reference to a value of 'b', made by remote of '"),
            std::string::npos);
  EXPECT_NE(lines[1].find("'a' holds a reference to a value of its own, made by remote of '"),
            std::string::npos);
  deliver_all();
  expect_nothing_left();
  EXPECT_EQ(error_of([&] { return rref.rpc_sync(&Counter::get); }).kind, ErrorKind::rref_deleted);
  EXPECT_EQ(error_of([&] { return mine.local_value().get(); }).kind, ErrorKind::rref_deleted);
}

TEST_F(RRefLossTest, DebugInfoListsOwnersUsersChildrenAndWaits) {
  begin();
  const RRef<Counter> rref = made();
  const RRef<Counter> to_come = a().calls.remote<Counter>("b", 6);
  (void)a().calls.rpc_async("c", &keep_two, rref, to_come);
  const auto creation = hold("a>b Call");
  deliver("a>c Call");
  deliver("c>b ForkRequest");
  deliver("c>b ForkRequest");
  EXPECT_NE(b().rrefs.debug_info().find("1 wait for"), std::string::npos);
  EXPECT_NE(b().rrefs.debug_info().find("has its value, handles 0, uses 0, forks"),
            std::string::npos);
  EXPECT_NE(a().rrefs.debug_info().find("pending child"), std::string::npos);
  EXPECT_NE(a().rrefs.debug_info().find("confirmed, children 1"), std::string::npos);
  EXPECT_NE(c().rrefs.debug_info().find("pending, children 0"), std::string::npos);
  put_back(creation);
  deliver_all();
}

TEST_F(RRefLossTest, HandlesOutliveTheirNode) {
  begin(2);
  std::optional<RRef<Counter>> theirs = made();
  std::optional<RRef<Counter>> mine = a().calls.remote<Counter>("a", 2);
  deliver_all();
  nodes[0]->end();
  nodes[0].reset();
  EXPECT_EQ(error_of([&] { return theirs->rpc_sync(&Counter::get); }).kind,
            ErrorKind::node_stopped);
  EXPECT_EQ(error_of([&] { return mine->local_value().get(); }).kind, ErrorKind::node_stopped);
  EXPECT_EQ(error_of([&] { return theirs->rpc_async(&Counter::get).wait(); }).kind,
            ErrorKind::node_stopped);
  EXPECT_EQ(error_of([&] { return theirs->confirmed_by_owner(); }).kind, ErrorKind::node_stopped);
  EXPECT_EQ(theirs->owner_name(), "b");
  theirs.reset();
  mine.reset();
  nodes.erase(nodes.begin());
}

TEST_F(RRefLossTest, ANodeMayEndWhileAReferencesTargetIsStillBeingMade) {
  // A method waits for a value that never comes, and would make another: the end fails neither
  // twice.
  begin(2);
  const RRef<Counter> slow = a().calls.remote<Counter>("b", 1);
  const RRef<int64_t> second = slow.remote(&Counter::add, 1);
  const RRef<int64_t> third = slow.remote(&Counter::add, 2);
  while (!network.in_flight().empty()) network.deliver(0);  // Nothing runs.
  b().end();
  world.settle();
  EXPECT_EQ(b().rrefs.owner_count(), 0u);
}

}  // namespace
}  // namespace rehearsal
