// One of three workers says of a reference what only another one may: its word counts for nothing.
// Of calls: tests/core/authority/forged_messages_test.cc.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/rref/rref_fixture.h"

namespace rehearsal {
namespace {

class ForgedReferencesTest : public RRefFixture {
 protected:
  void SetUp() override { begin(); }

  RRef<Counter> made_by_a() {
    RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
    deliver_all();
    return rref;
  }
  // It arrives before anything else.
  void say(doubles::CallNode& from, doubles::CallNode& to, Message message) {
    from.runtime->post([&] { from.sessions.send(to.self(), std::move(message)); });
    network.deliver(network.in_flight().size() - 1);
    world.settle();
  }
  static bool is_accused(doubles::CallNode& by, doubles::CallNode& of, const std::string& field) {
    const MaybeError& lost = by.sessions.lost(of.self());
    return lost && lost->kind == ErrorKind::protocol &&
           lost->text.find("broke the protocol: " + field + " ") != std::string::npos;
  }
};

TEST_F(ForgedReferencesTest, AThirdWorkerConfirmsNoCreation) {
  // c confirms what a creates at b, which b has not heard of yet.
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  const auto creation = hold("a>b Call");
  say(c(), a(), Message{ForkConfirm{*rref.shared_handle()->fork(), {}}});
  EXPECT_TRUE(is_accused(a(), c(), "ForkConfirm.fork"));
  EXPECT_FALSE(rref.confirmed_by_owner());
  EXPECT_EQ(a().rrefs.pending_user_count(), 1u);
  put_back(creation);
  deliver_all();
  EXPECT_TRUE(rref.confirmed_by_owner());
  EXPECT_FALSE(a().sessions.lost(WorkerId{1}));
}

TEST_F(ForgedReferencesTest, AThirdWorkerRefusesNoReference) {
  // The same with an error: the reference stays good.
  const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
  const auto creation = hold("a>b Call");
  say(c(), a(),
      Message{ForkConfirm{*rref.shared_handle()->fork(),
                          Error{.kind = ErrorKind::rref_deleted, .text = "gone"}}});
  EXPECT_TRUE(is_accused(a(), c(), "ForkConfirm.fork"));
  put_back(creation);
  deliver_all();
  deliver_while_waiting();
  EXPECT_EQ(rref.rpc_sync(&Counter::get), 5);
}

TEST_F(ForgedReferencesTest, AnotherThanTheChildAcceptsNothing) {
  // Goal: a parent is pinned until its own child has accepted. Method: a has passed its reference
  // on to c, whose request has not reached b; b accepts in place of c.
  const RRef<Counter> rref = made_by_a();
  const Future<int64_t> kept = a().calls.rpc_async("c", &keep, rref);
  deliver("a>c Call");
  const auto request = hold("c>b ForkRequest");
  Result<Message> asked = make_protobuf_codec()->decode(*request.frame.body);
  const ForkId fork = std::get<ForkRequest>(asked.value().content).fork;
  say(b(), a(), Message{ChildAccept{fork}});
  EXPECT_TRUE(is_accused(a(), b(), "ChildAccept.fork"));
  EXPECT_EQ(a().rrefs.pending_child_count(), 1u);
  put_back(request);
  deliver_all();
  check_invariants();
  EXPECT_FALSE(a().sessions.lost(WorkerId{2}));
}

TEST_F(ForgedReferencesTest, AThirdWorkerDeletesNoReference) {
  // c deletes a's reference at b: the value stays for a, and goes when a lets it go.
  std::optional<RRef<Counter>> rref = made_by_a();
  const RRefId id = rref->shared_handle()->id();
  say(c(), b(), Message{UserDelete{id, *rref->shared_handle()->fork()}});
  EXPECT_EQ(b().trace.marked("a delete came for a fork that is not registered"), 1u);
  EXPECT_EQ(b().rrefs.fork_count(), 1u);
  EXPECT_EQ(stage_.alive, 1);
  rref.reset();
  deliver_all();
  expect_nothing_left();
}

TEST_F(ForgedReferencesTest, AValueOfACreatorThatNobodyHasMetIsNotWaitedFor) {
  // Goal: no name that is made up keeps a use waiting, and with it every shutdown. Method: a waits
  // for and fetches a value of b, and c asks for a fork of it, that a life created which nobody
  // has.
  const RRefId id{{{4711}, {1, 1}, 1}, b().self(), b().incarnation(), 7};
  std::vector<Future<Unit>> uses;
  for (const CallKind kind : {CallKind::await, CallKind::fetch}) {
    Draft draft = a().caller->draft("b");
    draft.call.kind = kind;
    draft.call.target = id;
    uses.push_back(a().caller->start_typed<Unit>(std::move(draft)));
  }
  c().runtime->post([&] {
    c().sessions.send(b().self(), Message{ForkRequest{id, ForkId{{c().incarnation(), {4, 4}, 0}}}});
  });
  deliver("a>b Call");
  deliver("a>b Call");
  deliver("c>b ForkRequest");
  EXPECT_EQ(b().rrefs.awaited_count(), 0u);
  EXPECT_EQ(b().rrefs.describe_awaited(), "");
  EXPECT_EQ(b().served.size(), 0u);
  EXPECT_EQ(in_flight(),
            (std::vector<std::string>{"b>a Response", "b>a Response", "b>c ForkConfirm"}));
  EXPECT_EQ(b().trace.marked("a fork is refused"), 1u);
  deliver_all();
  for (const Future<Unit>& use : uses)
    EXPECT_EQ(use.result().error().kind, ErrorKind::rref_deleted);
  for (const uint32_t peer : {0u, 2u}) EXPECT_FALSE(b().sessions.lost(WorkerId{peer}));
}

}  // namespace
}  // namespace rehearsal
