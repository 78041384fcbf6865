#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/rref/rref_fixture.h"

namespace rehearsal {
namespace {

using Texts = std::vector<std::string>;

// One test for each row of the protocol's table; every message is delivered by hand.
class ForkProtocolTest : public RRefFixture {
 protected:
  void SetUp() override { begin(); }

  // a makes a counter at b, whose confirmation has arrived.
  RRef<Counter> made() {
    RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
    deliver_all();
    return rref;
  }
  CallId last_call_of_a() {
    CallId last;
    for (const auto& entry : a().trace.entries())
      if (entry.event.kind == EventKind::frame_sent &&
          entry.event.message_type == Message{Call{}}.type())
        last = CallId{entry.event.id};
    return last;
  }
};

TEST_F(ForkProtocolTest, ACreationIsOneMessageAndOneAnswer) {
  std::optional<RRef<Counter>> rref = a().calls.remote<Counter>("b", 5);
  EXPECT_EQ(in_flight(), (Texts{"a>b Call"}));
  EXPECT_EQ(a().rrefs.user_count(), 1u);
  EXPECT_EQ(a().rrefs.pending_user_count(), 1u);
  EXPECT_FALSE(rref->confirmed_by_owner());
  deliver("a>b Call");
  EXPECT_EQ(in_flight(), (Texts{"b>a ForkConfirm"}));
  EXPECT_EQ(b().rrefs.owner_count(), 1u);
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
  EXPECT_EQ(stage_.alive, 1);
  EXPECT_EQ(a().rrefs.pending_user_count(), 1u);
  deliver("b>a ForkConfirm");
  EXPECT_TRUE(rref->confirmed_by_owner());
  EXPECT_TRUE(in_flight().empty());
  EXPECT_FALSE(rref->is_owner());
  EXPECT_EQ(rref->owner_name(), "b");
  EXPECT_EQ(rref->owner().id, WorkerId{1});
}

TEST_F(ForkProtocolTest, ADroppedHandleIsDeletedAtItsOwner) {
  std::optional<RRef<Counter>> rref = made();
  std::optional<RRef<Counter>> copy = rref;
  rref.reset();
  EXPECT_TRUE(in_flight().empty());
  copy.reset();
  EXPECT_EQ(in_flight(), (Texts{"a>b UserDelete"}));
  EXPECT_EQ(stage_.alive, 1);
  deliver_all();
  expect_nothing_left();
}

TEST_F(ForkProtocolTest, AForkGoesThroughAllItsSteps) {
  // a passes its reference on to c; each message is delivered when everybody's tables were seen.
  const RRef<Counter> rref = made();
  const Future<int64_t> kept = a().calls.rpc_async("c", &keep, rref);
  EXPECT_EQ(a().rrefs.pending_child_count(), 1u);
  deliver("a>c Call");
  EXPECT_EQ(in_flight(), (Texts{"c>b ForkRequest"}));
  EXPECT_EQ(c().rrefs.pending_user_count(), 1u);
  EXPECT_TRUE(stage_.log.empty());
  deliver("c>b ForkRequest");
  EXPECT_EQ(in_flight(), (Texts{"b>c ForkConfirm"}));
  EXPECT_EQ(b().rrefs.fork_count(), 2u);
  deliver("b>c ForkConfirm");
  EXPECT_EQ(in_flight(), (Texts{"c>a ChildAccept", "c>a Response"}));
  EXPECT_EQ(stage_.log, (Texts{"keep at c"}));
  EXPECT_EQ(c().rrefs.pending_user_count(), 0u);
  EXPECT_EQ(a().rrefs.pending_child_count(), 1u);
  deliver("c>a ChildAccept");
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  deliver_all();
  EXPECT_EQ(kept.wait(), 1);
  EXPECT_EQ(b().rrefs.fork_count(), 2u);
  check_invariants();
}

TEST_F(ForkProtocolTest, AParentWhoseHandleIsGoneStaysUntilItsChildHasAccepted) {
  // G2: a drops its handle while its fork is under way.
  std::optional<RRef<Counter>> rref = made();
  (void)a().calls.rpc_async("c", &keep, *rref);
  rref.reset();
  EXPECT_EQ(in_flight(), (Texts{"a>c Call"}));
  EXPECT_EQ(a().rrefs.user_count(), 1u);
  for (const std::string text : {"a>c Call", "c>b ForkRequest", "b>c ForkConfirm"}) {
    deliver(text);
    EXPECT_EQ(a().rrefs.user_count(), 1u) << text;
    check_invariants();
  }
  deliver("c>a ChildAccept");
  EXPECT_EQ(a().rrefs.user_count(), 0u);
  deliver("a>b UserDelete");
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
  EXPECT_EQ(stage_.alive, 1);
  stage_.kept.clear();
  deliver_all();
  expect_nothing_left();
}

TEST_F(ForkProtocolTest, TheOwnersOwnForkIsRegisteredWhenItIsEncoded) {
  // b sends a reference to a value of its own: confirmed by adoption, no request and no acceptance.
  std::optional<RRef<Counter>> mine = b().calls.remote<Counter>("b", 1);
  deliver_all();
  EXPECT_TRUE(mine->is_owner());
  (void)b().calls.rpc_async("a", &keep, *mine);
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
  EXPECT_EQ(b().rrefs.pending_child_count(), 0u);
  mine.reset();
  EXPECT_EQ(stage_.alive, 1);
  deliver("b>a Call");
  EXPECT_EQ(in_flight(), (Texts{"a>b Response"}));
  EXPECT_EQ(a().rrefs.pending_user_count(), 0u);
  EXPECT_TRUE(stage_.kept.at("a")[0].confirmed_by_owner());
  stage_.kept.clear();
  deliver_all();
  expect_nothing_left();
}

TEST_F(ForkProtocolTest, AForkThatComesHomeBecomesAnOwnersHandle) {
  // a sends b's value to b: it counts as a handle there, and a is told at once.
  std::optional<RRef<Counter>> rref = made();
  (void)a().calls.rpc_async("b", &keep, *rref);
  rref.reset();
  deliver("a>b Call");
  EXPECT_EQ(in_flight(), (Texts{"b>a ChildAccept", "b>a Response"}));
  EXPECT_EQ(b().rrefs.handle_count(), 1u);
  EXPECT_TRUE(stage_.kept.at("b")[0].is_owner());
  deliver("b>a ChildAccept");
  deliver("a>b UserDelete");
  EXPECT_EQ(stage_.alive, 1);
  EXPECT_EQ(b().rrefs.fork_count(), 0u);
  stage_.kept.clear();
  deliver_all();
  expect_nothing_left();
}

TEST_F(ForkProtocolTest, AForkThatGoesToItsOwnSenderIsAForkLikeAnyOther) {
  const RRef<Counter> rref = made();
  const Future<int64_t> kept = a().calls.rpc_async("a", &keep, rref);
  deliver("a>b ForkRequest");
  deliver_all();
  EXPECT_EQ(kept.wait(), 1);
  EXPECT_EQ(b().rrefs.fork_count(), 2u);
  EXPECT_EQ(a().rrefs.user_count(), 2u);
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
}

TEST_F(ForkProtocolTest, AnOwnersForkToItselfNeedsNoMessages) {
  std::optional<RRef<Counter>> mine = b().calls.remote<Counter>("b", 1);
  deliver_all();
  EXPECT_EQ(b().calls.rpc_sync("b", &look, *mine), 1);
  EXPECT_TRUE(in_flight().empty());
  EXPECT_EQ(b().rrefs.fork_count(), 0u);
  EXPECT_EQ(b().rrefs.handle_count(), 1u);
  mine.reset();
  deliver_all();
  expect_nothing_left();
}

TEST_F(ForkProtocolTest, ARefusedForkStillAcceptsAndSendsNoDelete) {
  // a passes its reference on; b gives a up, and with it the value, before c's request arrives.
  const RRef<Counter> rref = made();
  const Future<int64_t> kept = a().calls.rpc_async("c", &keep, rref);
  b().fence(0);
  world.settle();
  EXPECT_EQ(stage_.alive, 0);
  deliver("a>c Call");
  deliver("c>b ForkRequest");
  EXPECT_EQ(b().trace.marked("a fork is refused"), 1u);
  EXPECT_EQ(b().trace.count(EventKind::fork_refused), 1u);
  deliver("b>c ForkConfirm");
  EXPECT_TRUE(stage_.log.empty());
  EXPECT_EQ(c().rrefs.user_count(), 0u);
  deliver("c>a ChildAccept");
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  deliver_all();
  EXPECT_EQ(kept.result().error().kind, ErrorKind::rref_deleted);
  EXPECT_EQ(kept.result().error().function, "keep");
  EXPECT_EQ(c().trace.count(EventKind::user_deleted), 1u);
  EXPECT_EQ(b().trace.marked("a delete came for a fork that is not registered"), 0u);
}

TEST_F(ForkProtocolTest, WhenTheOwnerIsLostTheChildAcceptsAllTheSame) {
  // c loses b while its request is under way: the gate fails, and a's pin is released.
  const RRef<Counter> rref = made();
  const Future<int64_t> kept = a().calls.rpc_async("c", &keep, rref);
  deliver("a>c Call");
  c().fence(1, "silent");
  world.settle();
  deliver("c>a ChildAccept");
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  deliver_all();
  EXPECT_EQ(kept.result().error().kind, ErrorKind::peer_lost);
  EXPECT_EQ(kept.result().error().worker, "b");
  EXPECT_EQ(c().rrefs.user_count(), 0u);
}

TEST_F(ForkProtocolTest, AForkWhoseOwnerIsLostAlreadyIsRefusedOnArrival) {
  const RRef<Counter> rref = made();
  const Future<int64_t> kept = a().calls.rpc_async("c", &keep, rref);
  c().fence(1, "silent");
  deliver("a>c Call");
  EXPECT_EQ(c().trace.marked("a fork arrived whose owner is lost"), 1u);
  deliver_all();
  EXPECT_EQ(kept.result().error().kind, ErrorKind::peer_lost);
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
}

TEST_F(ForkProtocolTest, AnswersForWhatIsSettledAreMarked) {
  // A confirmation, an acceptance and a deletion that nobody waits for change nothing.
  const RRef<Counter> rref = made();
  const ForkId unknown{{a().incarnation(), {1, 2}, 3}};
  a().runtime->post([&] {
    a().rrefs.on_fork_confirm(WorkerId{1}, {unknown, {}});
    a().rrefs.on_fork_confirm(WorkerId{1}, {*rref.shared_handle()->fork(), {}});
    a().rrefs.on_child_accept(WorkerId{1}, {unknown});
    b().runtime->post([&] {
      b().rrefs.on_user_delete(WorkerId{0}, {rref.shared_handle()->id(), unknown});
    });
  });
  EXPECT_EQ(a().trace.marked("an answer came for a fork that is settled"), 2u);
  EXPECT_EQ(a().trace.marked("an acceptance came for a child that is settled"), 1u);
  EXPECT_EQ(b().trace.marked("a delete came for a fork that is not registered"), 1u);
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
}

TEST_F(ForkProtocolTest, ForksThatCannotBeAreRefusedWithoutHarm) {
  // The same fork twice, and an owner that does not exist, in calls that b makes up.
  const RRef<Counter> rref = made();
  Fork fork{rref.shared_handle()->id(), ForkId{{b().incarnation(), {5, 5}, 0}}, false};
  Fork stranger = fork;
  stranger.rref.owner = {77};
  for (const std::vector<Fork>& forks : {std::vector<Fork>{fork, fork}, {stranger}}) {
    Call call{.id = CallId{{b().incarnation(), {6, 6}, forks.size()}}};
    call.arguments.forks = forks;
    c().runtime->post([&] { c().served.on_call(WorkerId{1}, Call(call)); });
  }
  world.settle();
  EXPECT_EQ(c().trace.marked("forks arrived that cannot be"), 2u);
  EXPECT_EQ(c().rrefs.user_count(), 0u);
  deliver_all();
  EXPECT_EQ(b().trace.marked("a response came after its call was given up"), 2u);
}

TEST_F(ForkProtocolTest, WhoPassesAReferenceOnTwiceUnderOneIdHearsThatItWasNotTaken) {
  // Goal: a worker that a mad one makes do the same thing twice keeps no reference for it. Method:
  // a passes its own on to c, where it stays, and once more under the id of the same call.
  std::optional<RRef<Counter>> rref = made();
  (void)a().calls.rpc_async("c", &keep, *rref);
  deliver_all();
  ASSERT_EQ(c().rrefs.user_count(), 1u);
  Call again{.id = last_call_of_a()};
  again.arguments.handles.push_back(rref->shared_handle());
  rref.reset();
  a().runtime->post([&] {
    ASSERT_TRUE(
        a().rrefs.prepare_forks(WorkerId{2}, again.id, kArgumentForks, again.arguments).ok());
  });
  world.settle();
  EXPECT_EQ(a().rrefs.pending_child_count(), 1u);
  c().runtime->post([&] { c().served.on_call(WorkerId{0}, Call(again)); });
  deliver_all();
  EXPECT_EQ(c().trace.marked("forks arrived that cannot be"), 1u);
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  EXPECT_EQ(a().rrefs.user_count(), 0u);
  EXPECT_EQ(c().rrefs.user_count(), 1u);
  stage_.kept.clear();
  deliver_all();
  expect_nothing_left();
}

TEST_F(ForkProtocolTest, AnOwnerHearsOfItsReferencesInAMessageThatIsRefused) {
  // Goal: a value is not kept for a worker that has not taken the reference. Method: beside it
  // comes one of a worker that does not exist.
  std::optional<RRef<Counter>> rref = b().calls.remote<Counter>("b", 5);
  world.settle();
  Call call{.id = CallId{{b().incarnation(), {6, 6}, 1}}};
  call.arguments.handles.push_back(rref->shared_handle());
  b().runtime->post([&] {
    ASSERT_TRUE(b().rrefs.prepare_forks(WorkerId{2}, call.id, kArgumentForks, call.arguments).ok());
  });
  world.settle();
  rref.reset();
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
  Fork stranger = call.arguments.forks.front();
  stranger.id = ForkId{{b().incarnation(), {5, 5}, 0}};
  stranger.rref.owner = {77};
  call.arguments.forks.push_back(stranger);
  c().runtime->post([&] { c().served.on_call(WorkerId{1}, Call(call)); });
  deliver_all();
  EXPECT_EQ(c().trace.marked("forks arrived that cannot be"), 1u);
  expect_nothing_left();
}

}  // namespace
}  // namespace rehearsal
