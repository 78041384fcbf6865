// One of three workers, c, calls more than once with one id, so that what a calls for it has one id
// as well: nobody is fenced for that, and no answer is taken for another one.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/api/stream.h"
#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

// The notes of the functions below.
struct RepeatedNotes {
  std::vector<Promise<int64_t>> promises;
  std::vector<Future<int64_t>> futures;
  std::vector<RRef<int64_t>> made;
  std::vector<RRef<int64_t>> kept;
  std::optional<RRef<int64_t>> given;
};
RepeatedNotes* repeated_notes = nullptr;

Future<int64_t> answer_to_come(CallContext& context) {
  repeated_notes->promises.push_back(context.promise<int64_t>());
  return repeated_notes->promises.back().future();
}
Future<int64_t> answer_to_come_of(CallContext& context, const RRef<int64_t>& rref) {
  repeated_notes->kept.push_back(rref);
  return answer_to_come(context);
}
// Answers with b's answer.
Future<int64_t> pass_on(CallContext& context) { return context.rpc_async("b", &answer_to_come); }
// Answers at once, and leaves a call to b behind.
int64_t leave_call(CallContext& context) {
  repeated_notes->futures.push_back(context.rpc_async("b", &answer_to_come));
  return 0;
}
int64_t leave_creation(CallContext& context) {
  repeated_notes->made.push_back(context.remote("b", &answer_to_come));
  return 0;
}
int64_t leave_call_with_reference(CallContext& context) {
  repeated_notes->futures.push_back(
      context.rpc_async("b", &answer_to_come_of, *repeated_notes->given));
  return 0;
}
RRef<int64_t> give_reference() { return *repeated_notes->given; }
void write_reference(StreamWriter<RRef<int64_t>>& out) { out.write(*repeated_notes->given); }
void write_number(StreamWriter<int64_t>& out) { out.write(5); }
int64_t same_number(int64_t number) { return number; }

class RepeatedIdsTest : public CallFixture {
 protected:
  void SetUp() override {
    repeated_notes = &notes_;
    registry.function("answer_to_come", &answer_to_come).function("pass_on", &pass_on);
    registry.function("answer_to_come_of", &answer_to_come_of);
    registry.function("leave_call", &leave_call).function("leave_creation", &leave_creation);
    registry.function("leave_call_with_reference", &leave_call_with_reference);
    registry.function("give_reference", &give_reference);
    registry.function("write_reference", &write_reference);
    registry.function("write_number", &write_number).function("same_number", &same_number);
    begin();
    settle();
  }
  void TearDown() override {
    deliver_all_but({});
    notes_ = {};
    CallFixture::TearDown();
    for (const auto& node : nodes) {
      EXPECT_EQ(node->served.size(), 0u);
      for (uint32_t peer = 0; peer < nodes.size(); ++peer)
        if (WorkerId{peer} != node->self()) EXPECT_FALSE(node->sessions.lost(WorkerId{peer}));
    }
    repeated_notes = nullptr;
  }

  // From now on; what goes so from one worker to the other stays on its way.
  void deliver_all_but(const std::set<std::pair<uint32_t, uint32_t>>& held) {
    world.set_idle([this, held] {
      for (size_t at = 0; at < network.in_flight().size(); ++at) {
        const auto& item = network.in_flight()[at];
        if (held.contains({item.from.value, item.to.value})) continue;
        network.deliver(at);
        return true;
      }
      return false;
    });
  }

  // A call with an id of the caller's choice.
  template <class T, class F>
  static Future<T> call(doubles::CallNode& from, const std::string& to, F function,
                        const CallId& id) {
    Draft draft = function_draft(*from.caller, to, function);
    draft.call.id = id;
    return from.caller->start_typed<T>(std::move(draft));
  }
  [[nodiscard]] CallId invented() { return CallId{{c().incarnation(), {7, 7}, 0}}; }

  // c creates a value at a by `pass_on`, its n-th.
  [[nodiscard]] Message creation(const CallId& id, uint64_t n) {
    Call call = function_draft(*c().caller, "a", &pass_on).call;
    call.id = id;
    call.created = value(n);
    call.created_fork = fork(n);
    return Message{std::move(call)};
  }
  [[nodiscard]] RRefId value(uint64_t n) {
    return {{c().incarnation(), {8, 8}, n}, WorkerId{0}, a().incarnation(), n};
  }
  [[nodiscard]] ForkId fork(uint64_t n) { return ForkId{{c().incarnation(), {9, 9}, n}}; }
  void say_to_a(Message message) {
    c().runtime->post([&] { c().sessions.send(WorkerId{0}, std::move(message)); });
  }
  // None: it is there, without an error.
  MaybeError error_of_value(uint64_t n) {
    const auto given = std::make_shared<std::optional<Result<HeldValue>>>();
    a().runtime->post([&] {
      a().rrefs.local_value(value(n),
                            [given](Result<HeldValue> held) { *given = std::move(held); });
    });
    if (!*given) return Error{.kind = ErrorKind::timeout, .text = "it is not there"};
    return (*given)->ok() ? std::nullopt : MaybeError((*given)->error());
  }

  RepeatedNotes notes_;
};

TEST_F(RepeatedIdsTest, ACallWithTheIdOfOneThatIsBeingServedIsRefused) {
  // c calls once more while a waits for b: b is asked once, and c is told, not fenced.
  const Future<int64_t> answer = call<int64_t>(c(), "a", &pass_on, invented());
  world.settle();
  Call again = function_draft(*c().caller, "a", &pass_on).call;
  again.id = invented();
  say_to_a(Message{again});
  world.settle();
  EXPECT_EQ(a().trace.marked("a call came with the id of one that is being served"), 1u);
  ASSERT_TRUE(answer.ready());  // By the refusal: c has one call of this id.
  EXPECT_EQ(answer.result().error().kind, ErrorKind::protocol);
  EXPECT_EQ(answer.result().error().worker, "a");
  EXPECT_EQ(a().served.size(), 1u);
  ASSERT_EQ(notes_.promises.size(), 1u);
  notes_.promises[0].complete(3);
  settle();
  EXPECT_EQ(c().trace.marked("a response came after its call was given up"), 1u);
}

TEST_F(RepeatedIdsTest, ACreationWithTheIdOfOneThatIsBeingServedHoldsTheError) {
  // Goal: the second is a value of its own, and the first goes on. Method: b answers the first.
  say_to_a(creation(invented(), 0));
  world.settle();
  say_to_a(creation(invented(), 1));
  world.settle();
  EXPECT_EQ(a().trace.marked("a call came with the id of one that is being served"), 1u);
  EXPECT_EQ(a().rrefs.owner_count(), 2u);
  ASSERT_TRUE(error_of_value(1));
  EXPECT_EQ(error_of_value(1)->kind, ErrorKind::protocol);
  EXPECT_EQ(error_of_value(0)->text, "it is not there");
  ASSERT_EQ(notes_.promises.size(), 1u);
  notes_.promises[0].complete(3);
  settle();
  EXPECT_FALSE(error_of_value(0));
  for (uint64_t n = 0; n < 2; ++n) say_to_a(Message{UserDelete{value(n), fork(n)}});
  settle();
  EXPECT_EQ(a().rrefs.owner_count(), 0u);
}

TEST_F(RepeatedIdsTest, ARefusedCallGivesItsReferencesBack) {
  // c calls a with a reference to a value of its own; then again, with the same fork and with a new
  // one.
  std::optional<RRef<int64_t>> mine = c().calls.remote("c", &same_number, 4);
  settle();
  Draft draft = function_draft(*c().caller, "a", &answer_to_come_of, *mine);
  const CallId id = draft.call.id;
  const Future<int64_t> answer = c().caller->start_typed<int64_t>(std::move(draft));
  world.settle();
  EXPECT_EQ(a().rrefs.user_count(), 1u);
  Call again = function_draft(*c().caller, "a", &answer_to_come_of, *mine).call;
  again.id = id;
  again.arguments.handles.clear();
  const RRefId rref = mine->shared_handle()->id();
  const ForkId first{{c().incarnation(), mix(id.place(), kArgumentForks), 0}};
  for (const ForkId& fork : {first, this->fork(0)}) {
    again.arguments.forks = {{rref, fork, true}};
    say_to_a(Message{again});
    world.settle();
  }
  EXPECT_EQ(a().trace.marked("a call came with the id of one that is being served"), 2u);
  EXPECT_EQ(answer.result().error().kind, ErrorKind::protocol);
  EXPECT_EQ(a().rrefs.user_count(), 1u);  // Of the first, which goes on.
  ASSERT_EQ(notes_.promises.size(), 1u);
  notes_.promises[0].complete(3);
  mine.reset();
  notes_.kept.clear();
  settle();
  EXPECT_EQ(a().rrefs.user_count(), 0u);
  EXPECT_EQ(c().rrefs.owner_count(), 0u);
}

TEST_F(RepeatedIdsTest, WhatIsCalledWithTheIdOfACallUnderWayIsRefusedByItsCaller) {
  // Goal: a makes no second call of one id while b has not answered the first. Method: c calls a
  // function of a that leaves its call to b behind, and again when it is answered.
  for (int again = 0; again < 2; ++again) {
    const Future<int64_t> left = call<int64_t>(c(), "a", &leave_call, invented());
    EXPECT_EQ(left.wait(), 0);
    settle();
  }
  ASSERT_EQ(notes_.futures.size(), 2u);
  ASSERT_EQ(notes_.promises.size(), 1u);
  EXPECT_FALSE(notes_.futures[0].ready());
  const Error refused = notes_.futures[1].result().error();
  EXPECT_EQ(refused.kind, ErrorKind::protocol);
  EXPECT_NE(refused.text.find("a call of this id is not answered yet"), std::string::npos);
  notes_.promises[0].complete(3);
  settle();
  EXPECT_EQ(notes_.futures[0].wait(), 3);
}

TEST_F(RepeatedIdsTest, ACreationWithTheIdOfOneThatLastsIsNotSent) {
  // The same by `remote`: b creates one value.
  for (int again = 0; again < 2; ++again) {
    const Future<int64_t> left = call<int64_t>(c(), "a", &leave_creation, invented());
    EXPECT_EQ(left.wait(), 0);
    settle();
  }
  ASSERT_EQ(notes_.made.size(), 2u);
  EXPECT_EQ(notes_.promises.size(), 1u);
  EXPECT_EQ(a().rrefs.user_count(), 1u);
  EXPECT_EQ(b().rrefs.owner_count(), 1u);
  notes_.promises.at(0).complete(3);
  settle();
  EXPECT_EQ(notes_.made[0].to_here(), 3);
}

TEST_F(RepeatedIdsTest, ReferencesAreNotPassedOnTwiceForOneId) {
  // The same with a reference among the arguments: a second call while b has not accepted it, and a
  // third when it has, but has not answered.
  notes_.given = a().calls.remote("c", &same_number, 1);
  settle();
  const auto leave = [this] {
    return call<int64_t>(c(), "a", &leave_call_with_reference, invented()).wait();
  };
  deliver_all_but({{0, 1}});
  for (int again = 0; again < 2; ++again) EXPECT_EQ(leave(), 0);
  EXPECT_EQ(a().rrefs.pending_child_count(), 1u);
  deliver_all_but({});
  settle();
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  EXPECT_EQ(leave(), 0);
  settle();
  EXPECT_EQ(a().rrefs.pending_child_count(), 0u);
  ASSERT_EQ(notes_.futures.size(), 3u);
  ASSERT_EQ(notes_.promises.size(), 1u);
  const auto refused = [this](size_t at) { return notes_.futures[at].result().error().text; };
  EXPECT_NE(refused(1).find("references cannot be passed on"), std::string::npos) << refused(1);
  EXPECT_NE(refused(2).find("a call of this id is not answered yet"), std::string::npos);
  notes_.promises[0].complete(3);
  settle();
  EXPECT_EQ(notes_.futures[0].wait(), 3);
}

TEST_F(RepeatedIdsTest, TheIdOfACallThatWasGivenUpIsFreeWhenItsAnswerHasCome) {
  // Goal: b is not asked twice with one id. Method: c gives its call up, b's answer to a is held
  // back, and c calls again.
  deliver_all_but({{1, 0}});
  const Future<int64_t> first = call<int64_t>(c(), "a", &pass_on, invented());
  world.settle();
  ASSERT_EQ(notes_.promises.size(), 1u);
  first.cancel();
  world.settle();
  EXPECT_EQ(a().served.size(), 0u);
  const Future<int64_t> second = call<int64_t>(c(), "a", &pass_on, invented());
  world.settle();
  ASSERT_TRUE(second.ready());
  EXPECT_EQ(second.result().error().kind, ErrorKind::protocol);
  EXPECT_NE(second.result().error().text.find("a call of this id is not answered yet"),
            std::string::npos);
  EXPECT_EQ(notes_.promises.size(), 1u);
  deliver_all_but({});
  settle();
  const Future<int64_t> third = call<int64_t>(c(), "a", &pass_on, invented());
  world.settle();
  ASSERT_EQ(notes_.promises.size(), 2u);
  notes_.promises[1].complete(5);
  settle();
  EXPECT_EQ(third.wait(), 5);
}

TEST_F(RepeatedIdsTest, ALateAnswerWhoseReferencesAreAwaitedAnswersNoLaterCall) {
  // Goal: b's answer to a call that a gave up is not the answer to a's next call of that id.
  // Method: c, which owns the value, confirms the reference in the answer when the second call is
  // under way.
  notes_.given = b().calls.remote("c", &same_number, 1);
  settle();
  deliver_all_but({{2, 0}});
  const CallId id{{a().incarnation(), {7, 7}, 0}};
  const auto first = call<RRef<int64_t>>(a(), "b", &give_reference, id);
  world.settle();
  EXPECT_FALSE(first.ready());
  EXPECT_EQ(a().rrefs.pending_user_count(), 1u);
  first.cancel();
  const Future<int64_t> second = call<int64_t>(a(), "b", &answer_to_come, id);
  world.settle();
  ASSERT_EQ(notes_.promises.size(), 1u);
  deliver_all_but({});
  settle();
  EXPECT_EQ(a().rrefs.user_count(), 0u);
  EXPECT_FALSE(second.ready());
  notes_.promises[0].complete(9);
  settle();
  EXPECT_EQ(second.wait(), 9);
}

TEST_F(RepeatedIdsTest, AValueOfAnEarlierStreamIsNoneOfALaterOne) {
  // The same with streams: the reference is the first value of a stream that a has given up.
  notes_.given = b().calls.remote("c", &same_number, 1);
  settle();
  deliver_all_but({{2, 0}});
  const auto open = [this](auto function) {
    Draft draft = function_draft(*a().caller, "b", function);
    draft.call.id = CallId{{a().incarnation(), {7, 7}, 0}};
    return std::make_unique<StreamReader>(a().caller, std::move(draft), 2);
  };
  std::unique_ptr<StreamReader> first = open(&write_reference);
  world.settle();
  EXPECT_EQ(a().rrefs.pending_user_count(), 1u);
  first.reset();
  world.settle();
  deliver_all_but({{1, 0}});
  const std::unique_ptr<StreamReader> second = open(&write_number);
  world.settle();
  EXPECT_EQ(a().rrefs.user_count(), 0u);
  EXPECT_EQ(a().pending.size(), 1u);
  deliver_all_but({});
  NextValue next = second->next();
  ASSERT_TRUE(next.ok() && next.value());
  EXPECT_TRUE(next.value()->value.handles.empty());
  next = second->next();
  EXPECT_TRUE(next.ok() && !next.value());
}

}  // namespace
}  // namespace rehearsal
