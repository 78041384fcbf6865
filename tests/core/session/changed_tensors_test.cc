// Goal: of a tensor that is changed in place after it was given away arrives what it was then, or
// what is to go in its place. Method: changes before a message leaves first, and before it leaves
// again.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/core/session/session_fixture.h"
#include "tests/core/wire/ready_message.h"

namespace rehearsal {
namespace {

class ChangedTensorTest : public SessionFixture {
 protected:
  // A call with a tensor too large to be copied; `instead` goes in its place if it is changed.
  void send_tensor() {
    Call call{.id = CallId{SessionEnd::id(1)}};
    call.arguments.tensors.push_back(tensor);
    Message message = ready(Message{call});
    SendOptions options{.waits_for_room = true};
    options.carried = std::make_unique<CarriedTensors>(
        CarriedTensors{carried_tensors(std::get<Call>(message.content).arguments),
                       SessionEnd::message(2), [this](const auto&) { ++changed; }});
    a->send(1, std::move(message), std::move(options));
  }
  const at::Tensor tensor = at::zeros({10000});
  int changed = 0;
};

TEST_F(ChangedTensorTest, AChangeBeforeTheResendSendsTheReplacement) {
  send_tensor();
  tensor.add_(1);
  cut();
  EXPECT_EQ(changed, 0);
  connect();
  EXPECT_EQ(changed, 1);
  EXPECT_EQ(a->trace.marked("a tensor changed before it was resent"), 1u);
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{2}));
  cut();
  connect();
  EXPECT_EQ(changed, 1);
}

TEST_F(ChangedTensorTest, AChangeBeforeTheFirstSendSendsTheReplacement) {
  // Goal: nobody receives what was not sent. Method: the window is full, so that the call waits.
  window_bytes = 40000;
  a = begin(0, 101);
  connect();
  Call first{.id = CallId{SessionEnd::id(5)}};
  first.arguments.values = std::string(100'000, 'x');
  a->send(1, Message{first}, {.waits_for_room = true});
  tensor.resize_({100'000});
  send_tensor();
  tensor.add_(1);
  EXPECT_EQ(changed, 0);
  deliver_all();
  world.advance(std::chrono::milliseconds(5));
  deliver_all();
  EXPECT_EQ(changed, 1);
  EXPECT_EQ(a->trace.marked("a tensor changed before it was sent"), 1u);
  EXPECT_EQ(b->received, (std::vector<uint64_t>{5, 2}));
}

TEST_F(ChangedTensorTest, AChangeOfASmallTensorReplacesNothing) {
  // It is copied when it is made ready.
  tensor.resize_({10});
  send_tensor();
  tensor.add_(1);
  cut();
  connect();
  deliver_all();
  EXPECT_EQ(changed, 0);
  EXPECT_EQ(b->received, (std::vector<uint64_t>{1}));
}

TEST_F(ChangedTensorTest, AChangeAfterTheFirstArrivalReplacesNothingThere) {
  // The receiver has the original; the replacement is a duplicate and dropped.
  send_tensor();
  deliver_all();
  tensor.add_(1);
  cut();
  connect();
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{1}));
}

TEST_F(ChangedTensorTest, WithoutAChangeTheSameBytesAreResent) {
  send_tensor();
  cut();
  connect();
  deliver_all();
  EXPECT_EQ(changed, 0);
  EXPECT_EQ(b->received, (std::vector<uint64_t>{1}));
}

TEST_F(ChangedTensorTest, AReplacementOvertakesNoSmallMessageThatWaits) {
  // Goal: on the small lane, what the last number says has arrived is there. Method: a large tensor
  // behind two small messages is changed before it leaves, on a link that begins with a large one.
  cut();
  connect();
  cut();
  a->send(1, 5);
  a->send(1, 6);
  tensor.resize_({100'000});
  send_tensor();
  tensor.add_(1);
  connect();
  EXPECT_EQ(changed, 1);
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{5, 6, 2}));
  world.advance(std::chrono::milliseconds(5));
  deliver_all();
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
}

TEST_F(ChangedTensorTest, AReplacementIsSentAgainUntilAllBeforeItHasArrived) {
  // Goal: no position tells of its own arrival; b drops what it has seen. Method: a large call
  // before it is lost on each link.
  cut();
  Call large{.id = CallId{SessionEnd::id(5)}};
  large.arguments.values = std::string(100'000, 'x');
  a->send(1, Message{large});
  send_tensor();
  tensor.add_(1);
  for (int link = 0; link < 4; ++link) {
    connect();
    for (size_t at = 0; at < network.in_flight().size();)
      if (network.in_flight()[at].frame.bytes() > kSmallFrameBytes)
        (void)network.take(at);
      else
        network.deliver(at);
    cut();
  }
  EXPECT_EQ(b->received, (std::vector<uint64_t>{2}));
  EXPECT_EQ(b->trace.marked("a frame arrived twice"), 1u);
  connect();
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{2, 5}));
}

TEST_F(ChangedTensorTest, AReplacementThatIsTheFirstLeavesAlone) {
  // Goal: on links that carry one frame each all arrives. Method: each link breaks behind the first
  // one that is sent on it.
  send_tensor();
  a->send(1, 6);
  tensor.add_(1);
  cut();
  for (int link = 0; link < 4 && b->received.size() < 2; ++link) {
    connect();
    EXPECT_EQ(network.in_flight().size(), 1u);
    EXPECT_TRUE(deliver_next_from(0));
    cut();
  }
  EXPECT_EQ(b->received, (std::vector<uint64_t>{2, 6}));
}

TEST_F(ChangedTensorTest, AReplacementGivesItsLaneTheTurnBack) {
  // Goal: what comes behind it on the lane that it has left still leaves. Method: it is sent again
  // on a link that begins with a small message, and on one that begins with a large one.
  tensor.resize_({100'000});
  for (const bool one_more : {false, true}) {
    b->received.clear();
    if (one_more) {
      cut();
      connect();
    }
    send_tensor();
    a->send(1, 6);
    Call large{.id = CallId{SessionEnd::id(7)}};
    large.arguments.values = std::string(100'000, 'x');
    a->send(1, Message{large});
    tensor.add_(1);
    cut();
    connect();
    for (int i = 0; i < 4; ++i) {
      deliver_all();
      world.advance(std::chrono::milliseconds(5));
    }
    std::sort(b->received.begin(), b->received.end());
    EXPECT_EQ(b->received, (std::vector<uint64_t>{2, 6, 7}));
    EXPECT_EQ(a->sessions.unacknowledged(), 0u);
  }
}

TEST_F(ChangedTensorTest, AReplacementGivesTheWindowItsRoomBack) {
  // 100 replaced calls, each of which filled the window: the next one still finds room.
  window_bytes = 40000;
  a = begin(0, 101);
  connect();
  for (uint64_t number = 0; number < 100; ++number) {
    send_tensor();
    tensor.add_(1);
    cut();
    connect();
    deliver_all();
    world.advance(std::chrono::milliseconds(5));
    deliver_all();
  }
  EXPECT_EQ(changed, 100);
  a->send(1, SessionEnd::call(7), {.waits_for_room = true});
  deliver_all();
  EXPECT_EQ(b->received.back(), 7u);
}

TEST_F(ChangedTensorTest, TheTensorIsKeptUntilItIsAcknowledgedAndNoLonger) {
  send_tensor();
  const size_t kept = tensor.use_count();
  EXPECT_GT(kept, 1u);
  deliver_all();
  world.advance(std::chrono::milliseconds(5));
  deliver_all();
  EXPECT_EQ(tensor.use_count(), 1u);
}

TEST_F(ChangedTensorTest, FencingLetsGoOfItOffTheStrand) {
  send_tensor();
  a->fence(1, {.kind = ErrorKind::peer_lost, .text = "given up"});
  while (!network.in_flight().empty()) (void)network.take(0);
  EXPECT_EQ(tensor.use_count(), 1u);
}

// ---- tensors that die ----

class DyingTensorTest : public SessionFixture {
 protected:
  // A call with a tensor that only it holds, and that notes where it dies: in the user's deleter.
  void send_tensor() {
    const c10::InferenceMode of_inference;  // Nobody counts its changes.
    Call call{.id = CallId{SessionEnd::id(1)}};
    call.arguments.tensors.push_back(at::from_blob(memory.data(), {10000}, [this](void*) {
      ++died;
      died_on_strand += a->runtime->on_strand() || b->runtime->on_strand() ? 1 : 0;
    }));
    SendOptions options;
    options.carried = std::make_unique<CarriedTensors>(
        CarriedTensors{{{call.arguments.tensors.front()}}, SessionEnd::message(2), nullptr});
    a->send(1, ready(Message{std::move(call)}), std::move(options));
  }
  std::vector<float> memory = std::vector<float>(10000);
  int died = 0;
  int died_on_strand = 0;
};

TEST_F(DyingTensorTest, AnAcknowledgedTensorDiesOffTheStrand) {
  send_tensor();
  deliver_all();
  b->messages.clear();
  EXPECT_EQ(died, 0);
  world.advance(std::chrono::milliseconds(5));
  deliver_all();
  EXPECT_EQ(died, 1);
  EXPECT_EQ(died_on_strand, 0);
}

TEST_F(DyingTensorTest, ATensorForALostPeerDiesOffTheStrand) {
  a->fence(1, {.kind = ErrorKind::peer_lost, .text = "given up"});
  send_tensor();
  EXPECT_EQ(died, 1);
  EXPECT_EQ(died_on_strand, 0);
}

}  // namespace
}  // namespace rehearsal
