// One of three workers says to another of a call between the two others, or of a context, what it
// may not: it is fenced, and the call goes on as if nothing had been said. Of references:
// tests/core/rref/forged_references_test.cc.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/stream.h"
#include "core/base/short_text.h"
#include "core/session/authority.h"
#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

// The notes of the functions below.
struct ForgedNotes {
  std::vector<Promise<int64_t>> promises;
  int64_t written = 0;
};
ForgedNotes* forged_notes = nullptr;

Future<int64_t> forged_promise(CallContext& context) {
  forged_notes->promises.push_back(context.promise<int64_t>());
  return forged_notes->promises.back().future();
}
int64_t forged_twice(int64_t number) { return 2 * number; }
int64_t forged_calls_on(CallContext& context, int64_t number) {
  return context.rpc_sync("c", &forged_twice, number);
}
void forged_write(StreamWriter<int64_t>& out, int64_t end) {
  for (int64_t number = 0; number < end; ++number) {
    out.write(number);
    ++forged_notes->written;
  }
}

class ForgedMessagesTest : public CallFixture {
 protected:
  static constexpr uint32_t kLiar = 2;

  void SetUp() override {
    forged_notes = &notes_;
    registry.function("forged_promise", &forged_promise).function("forged_write", &forged_write);
    registry.function("forged_twice", &forged_twice).function("forged_calls_on", &forged_calls_on);
  }
  void TearDown() override {
    notes_.promises.clear();
    world.set_idle([this] { return network.deliver_first(); });
    CallFixture::TearDown();
    for (const auto& node : nodes) EXPECT_EQ(node->served.size(), 0u);
    forged_notes = nullptr;
  }

  // c says it, and it arrives before anything else.
  void lie(uint32_t to, Message message) {
    c().runtime->post([&] { c().sessions.send(WorkerId{to}, std::move(message)); });
    for (size_t at = network.in_flight().size(); at-- > 0;)
      if (network.in_flight()[at].from == WorkerId{kLiar}) return network.deliver(at);
    FAIL() << "nothing was said";
  }
  static bool is_accused(doubles::CallNode& by, const std::string& field) {
    const MaybeError& lost = by.sessions.lost(WorkerId{kLiar});
    return lost && lost->kind == ErrorKind::protocol &&
           lost->text.starts_with("worker 'c' broke the protocol: " + field + " ");
  }
  void expect_honest_together() {
    EXPECT_FALSE(a().sessions.lost(WorkerId{1}));
    EXPECT_FALSE(b().sessions.lost(WorkerId{0}));
  }

  // a calls b, which answers when its promise is completed.
  Future<int64_t> call_under_way(CallId& id) {
    begin();
    Draft draft = function_draft(*a().caller, "b", &forged_promise);
    id = draft.call.id;
    Future<int64_t> answer = a().caller->start_typed<int64_t>(std::move(draft));
    world.settle();
    EXPECT_EQ(notes_.promises.size(), 1u);
    return answer;
  }
  void expect_answered(const Future<int64_t>& answer) {
    EXPECT_EQ(a().pending.size(), 1u);
    EXPECT_FALSE(answer.ready());
    notes_.promises.at(0).complete(7);
    settle();
    EXPECT_EQ(answer.wait(), 7);
    expect_honest_together();
  }

  // a reads a stream of b, of which nothing has come when c says something to a.
  void expect_stream_goes_on(const std::function<Message(const CallId&)>& said,
                             const std::string& field) {
    begin();
    world.set_idle(nullptr);
    Draft draft = function_draft(*a().caller, "b", &forged_write, 2);
    const CallId id = draft.call.id;
    StreamReader reader(a().caller, std::move(draft), 4);
    lie(0, said(id));
    EXPECT_TRUE(is_accused(a(), field));
    EXPECT_EQ(a().pending.size(), 1u);
    world.set_idle([this] { return network.deliver_first(); });
    for (int number = 0; number < 2; ++number) {
      const NextValue next = reader.next();
      EXPECT_TRUE(next.ok() && next.value().has_value()) << number;
    }
    const NextValue end = reader.next();
    EXPECT_TRUE(end.ok() && !end.value().has_value());
    expect_honest_together();
  }

  // a reads a stream of b with credit for two values, and takes none; `lies` when the function
  // waits for more.
  void expect_credit_kept(const std::function<void(const CallId&)>& lies) {
    begin();
    Draft draft = function_draft(*a().caller, "b", &forged_write, 100);
    const CallId id = draft.call.id;
    std::optional<StreamReader> reader;
    reader.emplace(a().caller, std::move(draft), 2);
    int step = 0;
    world.set_idle([&] {
      if (network.deliver_first()) return true;
      if (step == 2) return false;
      if (step++ == 0) {
        EXPECT_EQ(notes_.written, 2);
        lies(id);
      } else {
        EXPECT_TRUE(is_accused(b(), "Credit.call"));
        EXPECT_EQ(notes_.written, 2);
        reader.reset();
      }
      return true;
    });
    world.settle();
    EXPECT_EQ(step, 2);
    settle();
    EXPECT_EQ(notes_.written, 2);
    expect_honest_together();
  }

  ForgedNotes notes_;
};

TEST_F(ForgedMessagesTest, AResponseOfAThirdWorkerAnswersNothing) {
  // a waits for b; c answers in its place.
  CallId id;
  const Future<int64_t> answer = call_under_way(id);
  lie(0, Message{Response{.id = id, .value = {}, .error = {}, .autograd = {}}});
  EXPECT_TRUE(is_accused(a(), "Response.id"));
  expect_answered(answer);
}

TEST_F(ForgedMessagesTest, AValueOfAThirdWorkerIsNoneOfTheStream) {
  // c sends the first value of b's stream to a, before b does.
  expect_stream_goes_on(
      [](const CallId& id) {
        return Message{Item{.call = id, .position = 0, .value = {}, .error = {}, .autograd = {}}};
      },
      "Item.call");
}

TEST_F(ForgedMessagesTest, AThirdWorkerEndsNoStream) {
  // c says that b's stream had no value.
  expect_stream_goes_on(
      [](const CallId& id) { return Message{End{.call = id, .items = 0, .error = {}}}; },
      "End.call");
}

TEST_F(ForgedMessagesTest, AThirdWorkerCancelsNoCall) {
  // c cancels the call that a makes of b.
  CallId id;
  const Future<int64_t> answer = call_under_way(id);
  lie(1, Message{Cancel{id}});
  EXPECT_TRUE(is_accused(b(), "Cancel.id"));
  expect_answered(answer);
}

TEST_F(ForgedMessagesTest, TheTableOfCallsKnowsWhoMayCancel) {
  // The same without the judge of messages: what the table itself makes of it.
  CallId id;
  const Future<int64_t> answer = call_under_way(id);
  b().runtime->post([&] { b().served.on_cancel(WorkerId{kLiar}, Cancel{id}); });
  EXPECT_TRUE(is_accused(b(), "Cancel.id"));
  expect_answered(answer);
}

TEST_F(ForgedMessagesTest, AThirdWorkerGivesNoCredit) {
  // c tells b that a takes a hundred values; b's function waits for a all the same.
  expect_credit_kept([this](const CallId& id) { lie(1, Message{Credit{id, 100}}); });
}

TEST_F(ForgedMessagesTest, TheTableOfCallsKnowsWhoGivesCredit) {
  // The same without the judge of messages.
  expect_credit_kept([this](const CallId& id) {
    b().runtime->post([&] { b().served.on_credit(WorkerId{kLiar}, Credit{id, 4}); });
  });
}

TEST_F(ForgedMessagesTest, AContextOfAWorkerThatDoesNotExistIsNotLookedUp) {
  // c calls in a context that a fourth worker is said to have made, and one beyond all numbers.
  begin();
  for (const auto& [to, creator] : {std::pair(0u, 3u), std::pair(1u, UINT32_MAX)}) {
    Call call{.id = CallId{{c().incarnation(), {7, 7}, 0}}};
    call.context =
        ContextName{AutogradContextId{{c().incarnation(), {5, 5}, 0}}, WorkerId{creator}};
    lie(to, Message{call});
    EXPECT_TRUE(is_accused(*nodes[to], "Call.context_creator")) << creator;
  }
  expect_honest_together();
}

TEST_F(ForgedMessagesTest, CallsThatSayThatTheyAreNestedHaveALimitOfTheirOwn) {
  // Goal: who says that its calls are nested passes the limit of executions, but no farther than
  // another one, which others do not feel. Method: one place, two nested calls a worker; a calls
  // four times and c once, before anything runs.
  begin({.execution_limit = 1, .queue_limit = 10, .nested_limit = 2});
  world.set_idle(nullptr);
  a().main->depth = c().main->depth = 1;
  std::vector<Future<int64_t>> answers;
  for (int64_t number = 0; number < 4; ++number)
    answers.push_back(a().calls.rpc_async("b", &forged_twice, number));
  const Future<int64_t> of_other = c().calls.rpc_async("b", &forged_twice, 10);
  for (int i = 0; i < 5; ++i) network.deliver(0);
  EXPECT_EQ(b().served.size(), 3u + 3u);
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 3u);
  world.set_idle([this] { return network.deliver_first(); });
  EXPECT_EQ(of_other.wait(), 20);
  for (int64_t number = 0; number < 2; ++number) EXPECT_EQ(answers[number].wait(), 2 * number);
  for (int64_t number = 2; number < 4; ++number) {
    const Error error = answers[number].result().error();
    EXPECT_EQ(error.kind, ErrorKind::overloaded);
    EXPECT_EQ(error.worker, "b");
    EXPECT_NE(error.text.find("2 calls are nested in calls of this worker"), std::string::npos)
        << error.text;
  }
  EXPECT_EQ(a().calls.rpc_sync("b", &forged_twice, 4), 8);  // The others have ended.
  for (const uint32_t caller : {0u, kLiar}) EXPECT_FALSE(b().sessions.lost(WorkerId{caller}));
}

TEST_F(ForgedMessagesTest, WhatIsNestedAsDeeplyAsCallsCanBeIsRefusedBeforeItCallsOn) {
  // Goal: nobody is led to send a depth that its receiver takes for a breach. Method: a says that
  // its call is the deepest; then that it is one less deep, so that the call which b makes in it is
  // the deepest, and c refuses that.
  begin();
  a().main->depth = kCallDepthMax - 1;
  const Error deepest = error_of([&] { return a().calls.rpc_sync("b", &forged_calls_on, 1); });
  EXPECT_EQ(deepest.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(deepest.worker, "b");
  EXPECT_EQ(deepest.text, "it is nested as deeply as calls can be");
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 0u);
  a().main->depth = kCallDepthMax - 2;
  const Error nested = error_of([&] { return a().calls.rpc_sync("b", &forged_calls_on, 1); });
  EXPECT_NE(nested.text.find("it is nested as deeply as calls can be"), std::string::npos);
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 1u);
  EXPECT_EQ(c().trace.count(EventKind::call_executed), 0u);
  expect_honest_together();
  EXPECT_FALSE(b().sessions.lost(WorkerId{kLiar}));
  EXPECT_FALSE(c().sessions.lost(WorkerId{1}));
}

TEST(ForgedTexts, LongerThanTheyCanBeBreakTheProtocol) {
  SessionOptions options;
  options.names = {"a", "b"};
  const Pair pair{WorkerId{0}, {100}, WorkerId{1}, {200}};
  const auto field_of = [&](size_t name, size_t failure) {
    Call call{.id = CallId{{Incarnation{100}, {7, 7}, 0}}, .kind = CallKind::operator_};
    call.name = std::string(name, 'x');
    call.failure = std::string(failure, 'x');
    const auto violation = violation_of(Message{call}, pair, options);
    return violation ? std::string(violation->field) : std::string();
  };
  EXPECT_EQ(field_of(kOperatorNameMax, kErrorTextMax), "");
  EXPECT_EQ(field_of(kOperatorNameMax + 1, 0), "Call.name");
  EXPECT_EQ(field_of(0, kErrorTextMax + 1), "Call.failure");
}

}  // namespace
}  // namespace rehearsal
