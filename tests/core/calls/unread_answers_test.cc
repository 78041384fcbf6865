// A peer that does not read what it has asked for: it is answered no more until it does.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/api/stream.h"
#include "core/base/future_groups.h"
#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

std::string text_of_size(int64_t bytes) { return std::string(static_cast<size_t>(bytes), 'x'); }

// How many numbers two streams have written.
std::array<int64_t, 2>* written = nullptr;
void write_numbers(StreamWriter<int64_t>& out, int64_t stream, int64_t end) {
  for (int64_t& number = written->at(static_cast<size_t>(stream)); number < end; ++number)
    out.write(number);
}

class UnreadAnswersTest : public CallFixture {
 protected:
  static constexpr const char* kWaits = "a call waits until its caller has read answers";

  void SetUp() override {
    registry.function("text_of_size", &text_of_size).function("write_numbers", &write_numbers);
    written = &written_;
  }
  void TearDown() override {
    deliver_everything();
    CallFixture::TearDown();
    for (const auto& node : nodes) EXPECT_EQ(node->served.size(), 0u);
    written = nullptr;
  }

  void deliver_everything() {
    world.set_idle([this] { return network.deliver_first(); });
  }
  // From now on nothing of b reaches a: a acknowledges nothing of it.
  void a_reads_nothing() {
    settle();
    world.set_idle([this] { return deliver_but_to_a(); });
  }
  // All but what b sends to a.
  bool deliver_but_to_a() {
    for (size_t at = 0; at < network.in_flight().size(); ++at) {
      const auto& item = network.in_flight()[at];
      if (item.from == WorkerId{1} && item.to == WorkerId{0}) continue;
      network.deliver(at);
      return true;
    }
    return false;
  }
  [[nodiscard]] size_t sent_to_a() const {
    size_t count = 0;
    for (const auto& item : network.in_flight())
      if (item.from == WorkerId{1} && item.to == WorkerId{0} && item.frame.body) ++count;
    return count;
  }
  std::vector<Future<std::string>> a_calls(int times, int64_t bytes) {
    std::vector<Future<std::string>> answers;
    for (int i = 0; i < times; ++i)
      answers.push_back(a().calls.rpc_async("b", &text_of_size, bytes));
    world.settle();
    return answers;
  }

  std::array<int64_t, 2> written_{};
};

TEST_F(UnreadAnswersTest, CallsOfWhoDoesNotReadWaitAndThoseOfOthersDoNot) {
  // Goal: what is made for a peer is bounded by what it leaves unread. Method: a limit of 1,000
  // bytes, which the answer to a's first call reaches; then a calls and fetches more, and c calls;
  // then a reads.
  limits.unread_bytes = 1000;
  begin();
  const RRef<std::string> rref = a().calls.remote("b", &text_of_size, 20);
  a_reads_nothing();
  const auto first = a_calls(1, 1000);
  EXPECT_EQ(sent_to_a(), 1u);
  const auto later = a_calls(2, 1000);
  const Future<std::string> fetched = rref.to_here_async();
  const RRef<std::string> created = a().calls.remote("b", &text_of_size, 30);
  world.settle();
  EXPECT_EQ(b().trace.marked(kWaits), 3u);  // A fetch, whose value is there, is only not answered.
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 2u);
  EXPECT_EQ(b().served.size(), 4u);
  EXPECT_EQ(sent_to_a(), 2u);  // The answer, and that there will be a value.
  EXPECT_EQ(c().calls.rpc_async("b", &text_of_size, 5).wait(), "xxxxx");
  EXPECT_EQ(sent_to_a(), 2u);
  deliver_everything();
  EXPECT_EQ(first.at(0).wait().size(), 1000u);
  for (const std::string& text : when_all(later).wait()) EXPECT_EQ(text.size(), 1000u);
  EXPECT_EQ(fetched.wait().size(), 20u);
  EXPECT_EQ(created.to_here().size(), 30u);
  EXPECT_FALSE(b().sessions.lost(WorkerId{0}));
}

TEST_F(UnreadAnswersTest, WhatWaitsForItsTurnToExecuteWaitsForItsCallerAsWell) {
  // Goal: calls that came before the first was answered do not begin either. Method: one place, and
  // three calls that are all there before any runs.
  limits.unread_bytes = 1000;
  begin({.execution_limit = 1, .queue_limit = 10});
  a_reads_nothing();
  std::vector<Future<std::string>> answers;
  for (int i = 0; i < 3; ++i)
    answers.push_back(a().calls.rpc_async("b", &text_of_size, int64_t{1000}));
  for (int i = 0; i < 3; ++i) network.deliver(0);
  EXPECT_EQ(b().trace.marked("a call waits for its turn to execute"), 2u);
  EXPECT_EQ(b().trace.marked(kWaits), 0u);
  world.settle();
  EXPECT_EQ(b().trace.marked(kWaits), 2u);
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 1u);
  EXPECT_EQ(sent_to_a(), 1u);
  deliver_everything();
  for (const std::string& text : when_all(answers).wait()) EXPECT_EQ(text.size(), 1000u);
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 3u);
}

TEST_F(UnreadAnswersTest, NothingStaysOfAWorkerThatIsFenced) {
  // The calls and the fetch that wait for a end with it, and do not run.
  limits.unread_bytes = 1000;
  begin();
  const RRef<std::string> rref = a().calls.remote("b", &text_of_size, 20);
  a_reads_nothing();
  const auto first = a_calls(1, 1000);
  const auto later = a_calls(2, 1000);
  const Future<std::string> fetched = rref.to_here_async();
  world.settle();
  EXPECT_EQ(b().served.size(), 3u);
  b().fence(0);
  world.settle();
  EXPECT_EQ(b().served.size(), 0u);
  EXPECT_EQ(b().rrefs.owner_count(), 0u);
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 2u);
  EXPECT_EQ(b().trace.marked("a call was given up before it started"), 2u);
  deliver_everything();
  settle();
  EXPECT_EQ(later.at(0).result().error().kind, ErrorKind::fenced);
  EXPECT_EQ(fetched.result().error().kind, ErrorKind::fenced);
}

TEST_F(UnreadAnswersTest, AStreamHoldsItsWriterWhateverCreditItsReaderHasGiven) {
  // Goal: values that nobody reads do not gather. Method: three messages may be on their way. Of a
  // stream to whoever reads nothing these are sent, one waits for room, and the next one's writer
  // waits; a second stream sends one. Then a reads: when nothing else happens any more.
  window_frames = 3;
  begin();
  bool reads = false;
  world.set_idle([&] {
    if (!reads && deliver_but_to_a()) return true;
    if (!std::exchange(reads, true)) {
      EXPECT_EQ(sent_to_a(), 3u);
      EXPECT_EQ(written_, (std::array<int64_t, 2>{4, 1}));
    }
    return network.deliver_first();
  });
  const Calls calls = a().calls.with_credit(1'000'000);
  Stream<int64_t> first = calls.rpc_stream("b", &write_numbers, 0, 500);
  Stream<int64_t> second = calls.rpc_stream("b", &write_numbers, 1, 2);
  for (int64_t number = 0; number < 500; ++number) EXPECT_EQ(first.next(), number);
  EXPECT_EQ(first.next(), std::nullopt);
  for (int64_t number = 0; number < 2; ++number) EXPECT_EQ(second.next(), number);
  EXPECT_EQ(second.next(), std::nullopt);
  EXPECT_TRUE(reads);
}

TEST_F(UnreadAnswersTest, WhoLeavesMoreAnswersUnreadThanCanBeOnTheirWayIsFenced) {
  // A limit of three answers, however small: the fourth is one too many.
  limits.unread_answers = 3;
  begin();
  a_reads_nothing();
  const auto three = a_calls(3, 1);
  EXPECT_FALSE(b().sessions.lost(WorkerId{0}));
  const auto fourth = a_calls(1, 1);
  ASSERT_TRUE(b().sessions.lost(WorkerId{0}));
  EXPECT_EQ(b().sessions.lost(WorkerId{0})->kind, ErrorKind::protocol);
  EXPECT_TRUE(b().sessions.lost(WorkerId{0})
                  ->text.starts_with("worker 'a' broke the protocol: Frame.acknowledged "))
      << b().sessions.lost(WorkerId{0})->text;
  EXPECT_EQ(b().served.size(), 0u);
}

TEST_F(UnreadAnswersTest, AnswersThatWereReadCountNoMore) {
  // The same limit: a reads after each three, and goes on for long.
  limits.unread_answers = 3;
  begin();
  for (int round = 0; round < 5; ++round) {
    a_reads_nothing();
    const auto answers = a_calls(3, 1);
    deliver_everything();
    for (const std::string& text : when_all(answers).wait()) EXPECT_EQ(text, "x");
  }
  EXPECT_FALSE(b().sessions.lost(WorkerId{0}));
}

}  // namespace
}  // namespace rehearsal
