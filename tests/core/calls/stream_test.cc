#include "core/api/stream.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The notes of the functions below.
struct StreamNotes {
  int64_t written = 0;
  std::vector<Error> errors;
  at::Tensor sent;
};
StreamNotes* stream_notes = nullptr;

void count_up(StreamWriter<int64_t>& out, int64_t end) {
  try {
    for (int64_t number = 0; number < end; ++number) {
      out.write(number);
      ++stream_notes->written;
    }
  } catch (const RpcError& thrown) {
    stream_notes->errors.push_back(thrown.error());
    throw;
  }
}
void count_then_fail(CallContext& context, StreamWriter<int64_t>& out, int64_t end) {
  for (int64_t number = 0; number < end; ++number) out.write(number);
  throw std::out_of_range("no more at " + context.worker_info().name);
}
void send_ones(StreamWriter<at::Tensor>& out) {
  stream_notes->sent = at::ones({10000});  // Small ones are copied.
  out.write(stream_notes->sent);
}
void send_unsendable(StreamWriter<at::Tensor>& out) {
  out.write(at::empty({2}, at::TensorOptions().device(at::kMeta)));
}
// Large and small in turn.
void send_sizes(StreamWriter<at::Tensor>& out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out.write(at::full({i % 2 == 0 ? 40'000 : 1}, double(i)));
}
int64_t twice(int64_t number) { return 2 * number; }

static_assert(StreamFunction<decltype(&count_up)> && !CallableFunction<decltype(&count_up)>);
static_assert(StreamFunction<decltype(&count_then_fail)>);
static_assert(std::is_same_v<ItemOf<decltype(&count_up)>, int64_t>);
static_assert(!std::is_copy_constructible_v<Stream<int64_t>>);

class StreamTest : public CallFixture {
 protected:
  void SetUp() override {
    stream_notes = &notes_;
    registry.function("count_up", &count_up).function("count_then_fail", &count_then_fail);
    registry.function("send_ones", &send_ones).function("send_unsendable", &send_unsendable);
    registry.function("send_sizes", &send_sizes).function("twice", &twice);
  }
  void TearDown() override {
    when_idle([] { return false; });
    CallFixture::TearDown();
    for (const auto& node : nodes) EXPECT_EQ(node->served.size(), 0u);
    stream_notes = nullptr;
  }

  // Whenever all is delivered, `body` says whether it did something.
  void when_idle(std::function<bool()> body) {
    world.set_idle([this, body = std::move(body)] { return network.deliver_first() || body(); });
  }
  // Takes what is in flight from b to a, acknowledgements aside.
  std::vector<doubles::ScriptedNetwork::InFlight> take_from_b() {
    std::vector<doubles::ScriptedNetwork::InFlight> taken;
    for (size_t at = 0; at < network.in_flight().size();) {
      const auto& item = network.in_flight()[at];
      if (item.from == WorkerId{1} && item.to == WorkerId{0} && item.frame.body)
        taken.push_back(network.take(at));
      else
        ++at;
    }
    return taken;
  }
  void deliver(doubles::ScriptedNetwork::InFlight item) {
    network.put(std::move(item));
    network.deliver(network.in_flight().size() - 1);
    world.settle();
  }

  StreamNotes notes_;
};

TEST_F(StreamTest, GivesTheValuesInOrderAndThenEnds) {
  begin();
  Stream<int64_t> stream = a().calls.rpc_stream("b", &count_up, 5);
  for (int64_t number = 0; number < 5; ++number) EXPECT_EQ(stream.next(), number);
  EXPECT_EQ(stream.next(), std::nullopt);
  EXPECT_EQ(stream.next(), std::nullopt);
  EXPECT_EQ(a().pending.size(), 0u);
  EXPECT_EQ(a().deadlines.size(), 0u);
  EXPECT_EQ(a().trace.count(EventKind::call_completed), 1u);
}

TEST_F(StreamTest, IsReadByALoopByNameAndFromOneself) {
  begin();
  std::vector<int64_t> read;
  for (const int64_t number : a().calls.rpc_stream("b", &count_up, 3)) read.push_back(number);
  for (const int64_t number : a().calls.rpc_stream<int64_t>("b", "count_up", int64_t{2}))
    read.push_back(number);
  for (const int64_t number : a().calls.rpc_stream("a", &count_up, 2)) read.push_back(number);
  for (const int64_t number : a().calls.rpc_stream("b", &count_up, 0)) read.push_back(number);
  EXPECT_EQ(read, (std::vector<int64_t>{0, 1, 2, 0, 1, 0, 1}));
}

TEST_F(StreamTest, ItsFunctionRunsAheadOfTheReaderByItsCredit) {
  // Goal: never more than three values that nobody has taken. Method: ask for one whenever nothing
  // else can happen, and look how many were written.
  begin();
  Stream<int64_t> stream = a().calls.with_credit(3).rpc_stream("b", &count_up, 10);
  std::vector<Future<std::optional<int64_t>>> values;
  when_idle([&] {
    const auto taken = static_cast<int64_t>(values.size());
    EXPECT_EQ(notes_.written, std::min<int64_t>(10, taken + 3));
    if (taken == 11) return false;
    values.push_back(stream.next_async());
    return true;
  });
  world.settle();
  ASSERT_EQ(values.size(), 11u);
  for (int64_t number = 0; number < 10; ++number) EXPECT_EQ(values.at(number).wait(), number);
  EXPECT_EQ(values.at(10).wait(), std::nullopt);
  EXPECT_GE(b().trace.marked("a stream waits for its caller"), 1u);
}

TEST_F(StreamTest, ValuesThatOvertakeEachOtherAreGivenInOrder) {
  // Goal: order and completeness do not depend on the lanes. Method: five values of two sizes and
  // the end of the stream arrive in reverse; nothing is given before the first is there.
  begin();
  world.set_idle(nullptr);
  Stream<at::Tensor> stream = a().calls.rpc_stream("b", &send_sizes, 5);
  std::vector<Future<std::optional<at::Tensor>>> values;
  for (int i = 0; i < 6; ++i) values.push_back(stream.next_async());
  network.deliver(0);
  world.settle();
  auto sent = take_from_b();
  ASSERT_EQ(sent.size(), 6u);
  for (size_t i = sent.size(); i-- > 1;) {
    deliver(std::move(sent[i]));
    EXPECT_FALSE(values.at(0).ready());
    EXPECT_EQ(a().pending.size(), 1u);
  }
  deliver(std::move(sent[0]));
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(values.at(i).wait()->select(0, 0).item<double>(), static_cast<double>(i));
  EXPECT_EQ(values.at(5).wait(), std::nullopt);
  EXPECT_EQ(a().pending.size(), 0u);
}

TEST_F(StreamTest, CreditThatComesAfterTheEndIsMarked) {
  // The end is the slowest: the values are taken, and paid for, before it is there.
  begin();
  world.set_idle(nullptr);
  Stream<int64_t> stream = a().calls.with_credit(2).rpc_stream("b", &count_up, 2);
  network.deliver(0);
  world.settle();
  auto sent = take_from_b();
  ASSERT_EQ(sent.size(), 3u);
  deliver(std::move(sent[0]));
  EXPECT_EQ(stream.next(), 0);
  network.deliver_all();
  EXPECT_EQ(b().trace.marked("credit came for a stream that has ended"), 1u);
  deliver(std::move(sent[2]));
  deliver(std::move(sent[1]));
  EXPECT_EQ(stream.next(), 1);
  EXPECT_EQ(stream.next(), std::nullopt);
}

TEST_F(StreamTest, AnErrorComesBehindTheValuesBeforeIt) {
  begin();
  Stream<int64_t> stream = a().calls.rpc_stream("b", &count_then_fail, 2);
  EXPECT_EQ(stream.next(), 0);
  EXPECT_EQ(stream.next(), 1);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(error_of([&] { return stream.next(); }),
              (Error{.kind = ErrorKind::remote_exception,
                     .text = "std::out_of_range: no more at b",
                     .worker = "b",
                     .function = "count_then_fail",
                     .chain = {},
                     .type = "std::out_of_range",
                     .trace = {},
                     .exception = {}}));
  Stream<at::Tensor> unsendable = a().calls.rpc_stream("b", &send_unsendable);
  const Error error = error_of([&] { return unsendable.next(); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(error.worker, "b");
}

TEST_F(StreamTest, DroppingItEndsItsFunction) {
  begin();
  {
    Stream<int64_t> stream = a().calls.with_credit(2).rpc_stream("b", &count_up, 1'000'000);
    const auto first = stream.next_async();
    when_idle([&, dropped = false]() mutable {
      if (std::exchange(dropped, true)) return false;
      stream = {};
      return true;
    });
    world.settle();
    EXPECT_EQ(first.wait(), 0);
  }
  settle();
  ASSERT_EQ(notes_.errors.size(), 1u);
  EXPECT_EQ(notes_.errors[0].kind, ErrorKind::cancelled);
  EXPECT_LE(notes_.written, 4);
  EXPECT_EQ(b().served.size(), 0u);
  EXPECT_EQ(a().trace.marked("the end came of a stream that was given up"), 1u);
}

TEST_F(StreamTest, WhatHadArrivedIsStillGivenAfterItWasCancelled) {
  begin();
  Stream<int64_t> stream = a().calls.with_credit(2).rpc_stream("b", &count_up, 1'000'000);
  when_idle([&, cancelled = false]() mutable {
    if (std::exchange(cancelled, true)) return false;
    stream.cancel();
    return true;
  });
  world.settle();
  EXPECT_EQ(stream.next(), 0);
  EXPECT_EQ(stream.next(), 1);
  const Error error = error_of([&] { return stream.next(); });
  EXPECT_EQ(error.kind, ErrorKind::cancelled);
  EXPECT_EQ(error.worker, "b");
  EXPECT_EQ(error.function, "count_up");
}

TEST_F(StreamTest, ItsTimeOutIsThatOfTheWhole) {
  // Values that nobody takes keep the stream open until its time is over.
  begin();
  Stream<int64_t> stream =
      a().calls.with_timeout(milliseconds(250)).with_credit(2).rpc_stream("b", &count_up, 100);
  const Instant start = world.now();
  world.settle();  // Until the function has ended, which waits for its reader.
  EXPECT_EQ(world.now() - start, milliseconds(250));
  EXPECT_EQ(stream.next(), 0);
  EXPECT_EQ(stream.next(), 1);
  EXPECT_EQ(error_of([&] { return stream.next(); }),
            (Error{.kind = ErrorKind::timeout,
                   .text = "the stream has not ended within 250 ms",
                   .worker = "b",
                   .function = "count_up",
                   .chain = {}}));
  EXPECT_EQ(notes_.errors.size(), 1u);
}

TEST_F(StreamTest, TheLossOfThePeerEndsItOnBothSides) {
  begin();
  Stream<int64_t> stream = a().calls.with_credit(2).rpc_stream("b", &count_up, 100);
  when_idle([&, lost = false]() mutable {
    if (std::exchange(lost, true)) return false;
    a().fence(1);
    return true;
  });
  world.settle();
  EXPECT_EQ(stream.next(), 0);
  EXPECT_EQ(stream.next(), 1);
  EXPECT_EQ(error_of([&] { return stream.next(); }).kind, ErrorKind::peer_lost);
  ASSERT_EQ(notes_.errors.size(), 1u);
  EXPECT_EQ(notes_.errors[0].kind, ErrorKind::cancelled);
}

TEST_F(StreamTest, TheEndOfANodeEndsItsWaits) {
  // The callee's node ends while its function waits, then the caller's while it reads.
  begin();
  Stream<int64_t> stream = a().calls.with_credit(2).rpc_stream("b", &count_up, 100);
  const auto end_when_idle = [this](size_t node) {
    when_idle([this, node, ended = false]() mutable {
      if (std::exchange(ended, true)) return false;
      nodes[node]->end();
      return true;
    });
  };
  end_when_idle(1);
  world.settle();
  ASSERT_EQ(notes_.errors.size(), 1u);
  EXPECT_EQ(notes_.errors[0].kind, ErrorKind::node_stopped);
  end_when_idle(0);
  EXPECT_EQ(stream.next(), 0);
  EXPECT_EQ(stream.next(), 1);
  EXPECT_EQ(error_of([&] { return stream.next(); }).kind, ErrorKind::node_stopped);
}

TEST_F(StreamTest, AFunctionThatWaitsForItsReaderLeavesItsPlaceToOthers) {
  // One function may execute at b at once: the reader needs it while the stream waits for him.
  begin({.execution_limit = 1, .queue_limit = 100});
  Stream<int64_t> stream = a().calls.with_credit(1).rpc_stream("b", &count_up, 3);
  std::vector<Future<std::optional<int64_t>>> values;
  std::vector<Future<int64_t>> calls;
  when_idle([&] {
    if (values.size() == 4) return false;
    EXPECT_TRUE(calls.empty() || calls.back().ready());
    calls.push_back(a().calls.rpc_async("b", &twice, static_cast<int64_t>(values.size())));
    values.push_back(stream.next_async());
    return true;
  });
  world.settle();
  for (int64_t number = 0; number < 3; ++number) {
    EXPECT_EQ(values.at(number).wait(), number);
    EXPECT_EQ(calls.at(number).wait(), 2 * number);
  }
}

TEST_F(StreamTest, WhatIsNoStreamCannotBeReadAsOne) {
  begin();
  EXPECT_EQ(error_of([&] { return a().calls.rpc_stream<int64_t>("b", "twice", int64_t{1}); }).text,
            "it is registered as (int64,) -> int64, not (int64,) -> stream<int64>");
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync<int64_t>("b", "count_up", int64_t{1}); }).text,
            "it is registered as (int64,) -> stream<int64>, not (int64,) -> int64");
  EXPECT_EQ(error_of([&] { return a().calls.with_credit(0).rpc_stream("b", &count_up, 1); }).kind,
            ErrorKind::bad_arguments);
  EXPECT_EQ(error_of([&] { return Stream<int64_t>().next(); }).text, "the stream is empty");
  // The callee refuses calls that typed code does not make.
  Draft plain = function_draft(*a().caller, "b", &count_up, 1);
  EXPECT_EQ(a().answer_to(std::move(plain)).error().kind, ErrorKind::bad_arguments);
  StreamReader wrong(a().caller, function_draft(*a().caller, "b", &twice, 1), 4);
  EXPECT_EQ(wrong.next().error().text, "its answer is one value, not a stream");
  FunctionRegistry other;
  EXPECT_THROW(other.function("count_up", &count_up).runs_inline(), std::invalid_argument);
}

// The messages that a peer may send in answer to a stream with credit for two values.
class BrokenStreamTest : public StreamTest {
 protected:
  // `send` is done by the callee, in place of its function's values.
  void expect_broken_by(const std::function<void(const CallId&)>& send) {
    begin();
    world.set_idle(nullptr);
    Draft draft = function_draft(*a().caller, "b", &count_up, 0);
    const CallId id = draft.call.id;
    StreamReader reader(a().caller, std::move(draft), 2);
    b().runtime->post([&] { send(id); });
    for (auto& item : take_from_b()) deliver(std::move(item));
    NextValue next = reader.next();
    while (next.ok() && next.value()) next = reader.next();
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().kind, ErrorKind::protocol);
    when_idle([] { return false; });
    settle();
  }
  void send(Message message) { b().sessions.send(WorkerId{0}, std::move(message)); }
};

TEST_F(BrokenStreamTest, AValueBeyondItsCreditBreaksTheProtocol) {
  expect_broken_by([&](const CallId& id) { send(Message{Item{.call = id, .position = 2}}); });
}

TEST_F(BrokenStreamTest, AValueThatComesTwiceBreaksTheProtocol) {
  expect_broken_by([&](const CallId& id) {
    send(Message{Item{.call = id, .position = 0}});
    send(Message{Item{.call = id, .position = 0}});
  });
}

TEST_F(BrokenStreamTest, AnEndBeforeWhatHasComeBreaksTheProtocol) {
  expect_broken_by([&](const CallId& id) {
    send(Message{Item{.call = id, .position = 1}});
    send(Message{End{.call = id, .items = 1, .error = {}}});
  });
}

TEST_F(BrokenStreamTest, OneValueInPlaceOfAStreamBreaksTheProtocol) {
  expect_broken_by([&](const CallId& id) {
    send(Message{Response{.id = id, .value = {}, .error = {}, .autograd = {}}});
  });
}

TEST_F(StreamTest, ATensorThatChangedBeforeItWasResentEndsTheStreamThere) {
  begin();
  world.set_idle(nullptr);
  Stream<at::Tensor> stream = a().calls.rpc_stream("b", &send_ones);
  network.deliver(0);
  world.settle();
  network.cut(0, 1);
  notes_.sent.fill_(2);
  network.connect(0, 1);
  when_idle([] { return false; });
  const Error error = error_of([&] { return stream.next(); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(error.worker, "b");
  EXPECT_NE(error.text.find("changed in place"), std::string::npos);
}

}  // namespace
}  // namespace rehearsal
