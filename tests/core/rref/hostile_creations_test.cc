// Creations and references of a worker that means ill, as many and as false as it likes: its peers
// stay up, hold a bounded number of them, and blame nobody whom it has given them.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/rref/rref_fixture.h"

namespace rehearsal {
namespace {

// c means ill, and talks to a and b.
class HostileCreationsTest : public RRefFixture {
 protected:
  // c's n-th value at a.
  [[nodiscard]] RRefId value(uint64_t n) {
    return {{c().incarnation(), {8, 8}, n}, a().self(), a().incarnation(), n};
  }
  [[nodiscard]] Call creation(uint64_t n) {
    Call call{.id = CallId{{c().incarnation(), {7, 7}, n}}};
    call.created = value(n);
    call.created_fork = ForkId{{c().incarnation(), {9, 9}, n}};
    return call;
  }
  // As if it had come over the network.
  static void arrive(doubles::CallNode& at, uint32_t from, Message message) {
    at.runtime->post([&] { at.on_message(WorkerId{from}, std::move(message)); });
  }
  // The error by which b answers when c asks for a fork; none: it has it.
  MaybeError answer_to_request(const RRefId& id, uint64_t n) {
    c().runtime->post([&] {
      c().sessions.send(b().self(), Message{ForkRequest{id, own_fork(n)}});
    });
    deliver("c>b ForkRequest");
    const auto item = hold("b>c ForkConfirm");
    Result<Message> answer = make_protobuf_codec()->decode(*item.frame.body);
    put_back(item);
    deliver_all();
    const ForkConfirm confirm = std::get<ForkConfirm>(answer.value().content);
    EXPECT_EQ(confirm.fork, own_fork(n));
    return confirm.error;
  }
  [[nodiscard]] ForkId own_fork(uint64_t n) { return ForkId{{c().incarnation(), {4, 4}, n}}; }

  // The error that c gets to a call of a with these forks in place of its arguments' own.
  Error answer_to_forks(const std::vector<Fork>& forks) {
    Draft draft = function_draft(*c().caller, "a", &answer, 1);
    Call call = draft.call;
    call.arguments.forks = forks;
    const auto given = std::make_shared<std::optional<Result<Answer>>>();
    c().caller->start(std::move(draft),
                      [given](Result<Answer>&& answer) { *given = std::move(answer); });
    (void)hold("c>a Call");
    arrive(a(), 2, Message{std::move(call)});
    deliver_all();
    if (*given && !(*given)->ok()) return (*given)->error();
    ADD_FAILURE() << "it was not refused";
    return {};
  }

  // b gives c the same reference until c holds three, which is the limit, and once more.
  void expect_three_given(const std::string& owner) {
    limits.references = 3;
    begin();
    stage_.kept["b"].push_back(b().calls.remote<Counter>(owner, 5));
    deliver_all();
    std::vector<Future<RRef<Counter>>> given;
    for (int n = 0; n < 4; ++n) {
      given.push_back(c().calls.rpc_async("b", &give));
      deliver("c>b Call");
    }
    EXPECT_EQ(b().rrefs.fork_count(), owner == "b" ? 3u : 0u);
    EXPECT_EQ(b().rrefs.pending_child_count(), owner == "b" ? 0u : 3u);
    deliver_all();
    EXPECT_EQ(b().rrefs.pending_child_count(), 0u);
    for (size_t n = 0; n < 3; ++n) EXPECT_TRUE(given.at(n).result().ok()) << n;
    const Error error = given.at(3).result().error();
    EXPECT_EQ(error.kind, ErrorKind::overloaded);
    EXPECT_EQ(error.text, "worker 'c' would hold more than 3 references of this one");
    given.clear();
    deliver_all();
    given.push_back(c().calls.rpc_async("b", &give));
    deliver_all();
    EXPECT_TRUE(given.at(0).result().ok());
    expect_nobody_is_lost();
  }

  void expect_nobody_is_lost() {
    for (const auto& node : nodes)
      for (uint32_t peer = 0; peer < nodes.size(); ++peer)
        if (WorkerId{peer} != node->self()) EXPECT_FALSE(node->sessions.lost(WorkerId{peer}));
  }
};

TEST_F(HostileCreationsTest, AChainOfAnyLengthFailsWithoutRecursion) {
  // Goal: the error of a value becomes that of all that is made of it, on one stack. Method: 30,000
  // values, each the result of a method of the one before; then the first comes, and is refused.
  begin();
  constexpr uint64_t kLength = 30'000;
  const uint32_t get = c().caller->registry().position<Counter>(&Counter::get).value();
  for (uint64_t n = 1; n <= kLength; ++n) {
    Call call = creation(n);
    call.function = get;
    call.target = value(n - 1);
    arrive(a(), 2, Message{std::move(call)});
  }
  EXPECT_EQ(a().rrefs.awaited_count(), 1u);
  EXPECT_EQ(a().served.size(), kLength);
  Call first = creation(0);
  first.kind = CallKind::operator_;
  first.name = "aten::no_such_operator";
  arrive(a(), 2, Message{std::move(first)});
  EXPECT_EQ(a().rrefs.awaited_count(), 0u);
  EXPECT_EQ(a().served.size(), 0u);
  EXPECT_EQ(a().rrefs.owner_count(), 1 + kLength);
  uint64_t with_error = 0;
  a().runtime->post([&] {
    for (uint64_t n = 0; n <= kLength; ++n)
      a().rrefs.local_value(value(n), [&](const Result<HeldValue>& held) {
        with_error += !held.ok() && held.error().kind == ErrorKind::unknown_function ? 1 : 0;
      });
  });
  EXPECT_EQ(with_error, 1 + kLength);
  EXPECT_FALSE(a().sessions.lost(c().self()));
  check_invariants();
}

TEST_F(HostileCreationsTest, OfManyForksEachIsComparedWithAllOthersAtOnce) {
  // Goal: a message of any size is judged at once. Method: 200,000 references in one call, of which
  // the last is the first again, or is said to be of a worker's own making: nothing of it stays.
  begin();
  constexpr uint64_t kForks = 200'000;
  const RRefId of_c{{c().incarnation(), {8, 8}, 0}, c().self(), c().incarnation(), 0};
  std::vector<Fork> forks;
  for (uint64_t n = 0; n < kForks; ++n) forks.push_back({of_c, own_fork(n), true});
  forks.back().id = forks.front().id;
  const Error twice = answer_to_forks(forks);
  EXPECT_EQ(twice.kind, ErrorKind::protocol);
  EXPECT_NE(twice.text.find("a reference came twice"), std::string::npos) << twice.text;
  forks.back() = {
      {{a().incarnation(), {8, 9}, 1}, b().self(), b().incarnation(), 0}, own_fork(kForks), false};
  const Error own = answer_to_forks(forks);
  EXPECT_EQ(own.kind, ErrorKind::protocol);
  EXPECT_EQ(a().trace.marked("forks arrived that cannot be"), 2u);
  EXPECT_EQ(a().rrefs.user_count(), 0u);
  deliver_while_waiting();
  EXPECT_EQ(c().calls.rpc_sync("a", &answer, 3), 3);
  expect_nobody_is_lost();
}

TEST_F(HostileCreationsTest, AReferenceThatItsReceiverIsSaidToHaveMadeIsRefusedAtOnce) {
  // Goal: nobody waits, and has an owner wait, for a value that it will never create itself.
  // Method: c gives a a reference to a value that a is said to create at b, as its next and as a
  // later one.
  begin();
  const RRef<Counter> made = a().calls.remote<Counter>("b", 5);
  deliver_all();
  RRefId false_id = made.shared_handle()->id();
  ASSERT_EQ(false_id.counter, 0u);
  for (const uint64_t counter : {uint64_t{1}, uint64_t{1'000'000'000}}) {
    false_id.counter = counter;
    const Error error = answer_to_forks({{false_id, own_fork(counter), false}});
    EXPECT_EQ(error.kind, ErrorKind::protocol);
    EXPECT_NE(error.text.find("that this worker has not created"), std::string::npos) << error.text;
  }
  EXPECT_EQ(a().rrefs.user_count(), 1u);
  EXPECT_EQ(a().rrefs.pending_user_count(), 0u);
  EXPECT_EQ(b().rrefs.awaited_count(), 0u);
  expect_nobody_is_lost();
}

TEST_F(HostileCreationsTest, AReferenceComesBackToWhoHasCreatedItsValue) {
  // The true case beside it: c gives a what a has created at b and given to c.
  begin();
  const RRef<Counter> made = a().calls.remote<Counter>("b", 5);
  deliver_all();
  (void)a().calls.rpc_async("c", &keep, made);
  deliver_all();
  const Future<int64_t> kept = c().calls.rpc_async("a", &keep, stage_.kept.at("c").at(0));
  deliver_all();
  EXPECT_EQ(kept.wait(), 1);
  EXPECT_EQ(stage_.kept.at("a").at(0), made);
  EXPECT_EQ(b().rrefs.fork_count(), 3u);
}

TEST_F(HostileCreationsTest, WhoAsksForMoreReferencesThanItMayHoldIsRefusedNotFenced) {
  // Goal: whoever asks may have been given them by another one. Method: a limit of three; c asks b
  // for five forks of a's value, gives one back, and asks again.
  limits.references = 3;
  begin();
  std::optional<RRef<Counter>> made = a().calls.remote<Counter>("b", 5);
  deliver_all();
  const RRefId id = made->shared_handle()->id();
  for (uint64_t n = 0; n < 3; ++n) EXPECT_FALSE(answer_to_request(id, n)) << n;
  for (uint64_t n = 3; n < 5; ++n) {
    const MaybeError refused = answer_to_request(id, n);
    ASSERT_TRUE(refused) << n;
    EXPECT_EQ(refused->kind, ErrorKind::overloaded);
    EXPECT_EQ(refused->text, "worker 'c' would hold more than 3 references of this one");
    EXPECT_EQ(refused->worker, "b");
  }
  EXPECT_EQ(b().rrefs.fork_count(), 1u + 3u);
  arrive(b(), 2, Message{UserDelete{id, own_fork(0)}});
  EXPECT_FALSE(answer_to_request(id, 5));
  EXPECT_EQ(b().rrefs.fork_count(), 1u + 3u);
  for (const uint64_t n : {1, 2, 5}) arrive(b(), 2, Message{UserDelete{id, own_fork(n)}});
  made.reset();
  deliver_all();
  expect_nothing_left();
  expect_nobody_is_lost();
}

TEST_F(HostileCreationsTest, AnAnswerThatWouldGiveAReferenceTooManyIsAnError) {
  // Goal: who calls for references for ever, and lets none go, gets no more than it may hold, and
  // may have more when it lets some go. Method: a value of the callee.
  expect_three_given("b");
}

TEST_F(HostileCreationsTest, ReferencesThatTheirReceiverHasNotAcceptedCountAsWell) {
  // The same with a value of a third worker: all four calls come before c has accepted anything.
  expect_three_given("a");
}

}  // namespace
}  // namespace rehearsal
