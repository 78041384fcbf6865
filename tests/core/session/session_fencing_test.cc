#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/short_text.h"
#include "tests/core/session/session_fixture.h"
#include "tests/core/wire/ready_message.h"

namespace rehearsal {
namespace {

class SessionFencingTest : public SessionFixture {
 protected:
  static Error lost() { return {.kind = ErrorKind::peer_lost, .text = "given up", .worker = "b"}; }
};

// ---- fencing ----

TEST_F(SessionFencingTest, BothSidesRefuseEachOtherOnceOneHasFenced) {
  // a fences b: a reports it at once, b when it is told; nothing passes any more.
  a->send(1, 1);
  a->fence(1, lost());
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(a->fenced[0].incarnation, Incarnation{200});
  EXPECT_EQ(a->fenced[0].why, lost());
  EXPECT_EQ(*a->sessions.lost(WorkerId{1}), lost());
  EXPECT_FALSE(a->sessions.joined(WorkerId{1}));
  EXPECT_EQ(a->sessions.unacknowledged(), 0u);
  EXPECT_TRUE(b->fenced.empty());
  deliver_all();
  ASSERT_EQ(b->fenced.size(), 1u);
  EXPECT_EQ(b->fenced[0].why.kind, ErrorKind::fenced);
  EXPECT_EQ(b->fenced[0].why.worker, "a");
  EXPECT_EQ(b->fenced[0].incarnation, Incarnation{100});
  EXPECT_EQ(a->sessions.fenced(), (std::vector<Incarnation>{{200}}));
}

TEST_F(SessionFencingTest, AReasonIsToldInAsFewBytesAsAnyTransportTakes) {
  // Goal: why a peer is fenced, or refused, is a short text on its way, however long it is here.
  // Method: a reason of two MiB, for each.
  Error why = lost();
  why.text = std::string(2 << 20, 'w');
  a->fence(1, why);
  deliver_all();
  ASSERT_EQ(b->fenced.size(), 1u);
  EXPECT_TRUE(b->fenced[0].why.text.starts_with("fenced by 'a': www"));
  EXPECT_TRUE(b->fenced[0].why.text.ends_with(" bytes more"));
  EXPECT_LE(b->fenced[0].why.text.size(), kErrorTextMax);
  b = begin(1, 201);
  a->refuse_hello = Error{.kind = ErrorKind::protocol, .text = why.text, .worker = "b"};
  connect();
  EXPECT_EQ(network.end(0).closed().at(WorkerId{1}).text, short_text(why.text));
}

TEST_F(SessionFencingTest, MessagesToAFencedPeerAreWithdrawn) {
  // Those that wait for room, those of later, but not those on their way.
  int withdrawn = 0;
  for (uint64_t number = 0; number <= window_frames; ++number)
    a->send(1, SessionEnd::call(number),
            {.waits_for_room = true, .on_withdrawn = [&] { ++withdrawn; }});
  a->fence(1, lost());
  EXPECT_EQ(withdrawn, 1);
  a->send(1, SessionEnd::call(500), {.on_withdrawn = [&] { ++withdrawn; }});
  EXPECT_EQ(withdrawn, 2);
  EXPECT_EQ(a->trace.all(EventKind::frame_dropped).back().text, "its receiver is lost");
}

TEST_F(SessionFencingTest, FramesOfAFencedOrUnknownIncarnationAreDropped) {
  a->send(1, 1);
  a->send(1, 2);
  const auto first = network.take(0);
  auto other_life = first;
  other_life.frame.header.source = {777};
  auto other_receiver = first;
  other_receiver.frame.header.destination = {777};
  network.put(other_life);
  network.put(other_receiver);
  b->fence(0, lost());
  network.put(first);
  while (!network.in_flight().empty()) network.deliver(0);
  EXPECT_TRUE(b->received.empty());
  EXPECT_EQ(b->trace.count(EventKind::frame_dropped), 4u);
  EXPECT_EQ(b->trace.count(EventKind::frame), 0u);
}

TEST_F(SessionFencingTest, AFencedIncarnationThatComesBackIsTurnedAway) {
  a->fence(1, lost());
  deliver_all();
  connect();
  EXPECT_EQ(network.end(0).closed().at(WorkerId{1}).kind, ErrorKind::fenced);
  EXPECT_FALSE(a->sessions.joined(WorkerId{1}));
  EXPECT_EQ(a->fenced.size(), 1u);
}

TEST_F(SessionFencingTest, AFencedPeerIsWelcomeAsANewIncarnation) {
  // Its numbers start again; nothing of the former life is left.
  a->send(1, 1);
  a->fence(1, lost());
  deliver_all();
  b = begin(1, 201);
  a->send(1, 2);
  connect();
  EXPECT_EQ(a->joined, (std::vector<Incarnation>{{200}, {201}}));
  a->send(1, 3);
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{3}));
  EXPECT_FALSE(a->sessions.lost(WorkerId{1}).has_value());
}

TEST_F(SessionFencingTest, ANewIncarnationEndsTheOldOneAtOnce) {
  // b restarts unnoticed; what was kept for its former life is not sent to the new one.
  a->send(1, 1);
  b = begin(1, 201);
  cut();
  connect();
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(a->fenced[0].incarnation, Incarnation{200});
  EXPECT_EQ(a->fenced[0].why.kind, ErrorKind::peer_lost);
  EXPECT_NE(a->fenced[0].why.text.find("new incarnation"), std::string::npos);
  deliver_all();
  EXPECT_TRUE(b->received.empty());
  a->send(1, 2);
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{2}));
}

TEST_F(SessionFencingTest, AHelloThatDoesNotFitIsRefusedAndReported) {
  b = begin(1, 201);
  a = begin(0, 101);
  a->refuse_hello = Error{.kind = ErrorKind::protocol, .text = "another registry", .worker = "b"};
  connect();
  EXPECT_EQ(a->refused.at(0).text, "another registry");
  EXPECT_TRUE(a->joined.empty());
  EXPECT_EQ(network.end(0).closed().at(WorkerId{1}).text, "another registry");
  deliver_all();
  // b had met a already: for it a is lost, with the reason.
  EXPECT_EQ(b->fenced.at(0).why.text, "another registry");
}

TEST_F(SessionFencingTest, AnEarlierLifeOfAPeerIsClosedAndTheLinkStaysWanted) {
  // Its hello arrives late: nobody's joining fails for it, and the present life may connect.
  a->refuse_hello = Error{.kind = ErrorKind::fenced, .text = "it has started again", .worker = "b"};
  b = begin(1, 201);
  connect();
  EXPECT_TRUE(a->refused.empty());
  EXPECT_EQ(a->joined, (std::vector<Incarnation>{{200}}));
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_EQ(network.end(0).closed().at(WorkerId{1}).text, "it has started again");
  EXPECT_TRUE(network.end(0).opened(WorkerId{1}));
  EXPECT_EQ(a->trace.marked("a link to an earlier life of a peer"), 1u);
  a->refuse_hello.reset();
  b = begin(1, 202);
  connect();
  EXPECT_EQ(a->joined, (std::vector<Incarnation>{{200}, {202}}));
  b->send(0, 7);
  deliver_all();
  EXPECT_EQ(a->received, std::vector<uint64_t>{7});
}

TEST_F(SessionFencingTest, ACloseBeforeTheyMetIsARefusal) {
  b = begin(1, 201);
  const Error why{.kind = ErrorKind::protocol, .text = "you do not fit", .worker = "a"};
  b->runtime->post([&] { b->sessions.on_peer_lost(WorkerId{0}, why, true); });
  EXPECT_EQ(b->refused.at(0).text, "you do not fit");
}

// ---- silence ----

TEST_F(SessionFencingTest, AnIdleLinkBeatsAndIsNotFenced) {
  // Ten times the peer's time-out, with a network that delivers: nobody is given up.
  world.set_idle([&] { return network.deliver_first(); });
  world.advance(kPeerTimeout * 10);
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_TRUE(b->fenced.empty());
  EXPECT_GT(a->trace.count(EventKind::ack_frame), 100u);
}

TEST_F(SessionFencingTest, ASilentPeerIsFencedWithinItsTimeoutAndTwoTicks) {
  // b hears nothing because all is kept in flight; so neither does a.
  world.advance(kPeerTimeout - kHeartbeat);
  EXPECT_TRUE(a->fenced.empty());
  world.advance(kHeartbeat * 3);
  ASSERT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(a->fenced[0].why.kind, ErrorKind::peer_lost);
  EXPECT_EQ(a->fenced[0].why.worker, "b");
  EXPECT_NE(a->fenced[0].why.text.find("nothing was heard of it for 8"), std::string::npos);
  EXPECT_EQ(a->trace.count(EventKind::peer_fenced), 1u);
}

TEST_F(SessionFencingTest, ALinkThatIsDownCountsAsSilence) {
  cut();
  world.advance(kPeerTimeout / 2);
  connect();
  world.advance(kPeerTimeout / 2 + kHeartbeat);
  EXPECT_TRUE(a->fenced.empty());
  cut();
  world.advance(kPeerTimeout + 3 * kHeartbeat);
  EXPECT_EQ(a->fenced.size(), 1u);
  EXPECT_EQ(b->fenced.size(), 1u);
}

TEST_F(SessionFencingTest, WithoutFencingASilentPeerIsNeverGivenUp) {
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  mutants.turn_on(Mutant::no_fencing);
  a = begin(0, 101);
  connect();
  world.advance(kPeerTimeout * 10);
  EXPECT_TRUE(a->fenced.empty());
}

TEST_F(SessionFencingTest, APeerThatIsLeavingMayBeSilent) {
  a->sessions.expect_silence(WorkerId{1});
  world.advance(kPeerTimeout * 3);
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_EQ(b->fenced.size(), 1u);
}

TEST_F(SessionFencingTest, AWorkerThatWasPausedBlamesNobody) {
  // Time jumps over three time-outs with no tick between; then its peers are heard again.
  world.pause(kPeerTimeout * 3);
  world.set_idle([&] { return network.deliver_first(); });
  world.advance(kPeerTimeout);
  EXPECT_TRUE(a->fenced.empty());
  EXPECT_TRUE(b->fenced.empty());
}

TEST_F(SessionFencingTest, AfterStopNothingIsSentReceivedOrTimed) {
  a->send(1, 1);
  b->send(0, 1);
  deliver_all();
  a->runtime->post([&] { a->sessions.stop(); });
  b->runtime->post([&] { b->sessions.stop(); });
  EXPECT_EQ(world.timers(), 0u);
  b->send(0, 2);
  EXPECT_TRUE(network.in_flight().empty());
  a->send(1, 3);
  cut();
  connect();
  deliver_all();
  EXPECT_EQ(b->received, (std::vector<uint64_t>{1}));
  world.advance(kPeerTimeout * 2);
  EXPECT_TRUE(a->fenced.empty());
}

// ---- peers that break the protocol ----

TEST_F(SessionFencingTest, AMessageThatCannotBeReadFencesItsSender) {
  a->send(1, 1);
  auto item = network.take(0);
  auto body = std::make_shared<FrameBody>();
  body->envelope = "\xff\xff\xff";
  item.frame.body = body;
  network.put(item);
  deliver_all();
  ASSERT_EQ(b->fenced.size(), 1u);
  EXPECT_EQ(b->fenced[0].why.kind, ErrorKind::protocol);
  EXPECT_EQ(b->fenced[0].why.worker, "a");
}

TEST_F(SessionFencingTest, AnAcknowledgementOfWhatWasNeverSentFencesItsSender) {
  a->send(1, 1);
  auto item = network.take(0);
  item.frame.header.acknowledged = 1;
  network.put(item);
  deliver_all();
  EXPECT_EQ(b->fenced.at(0).why.kind, ErrorKind::protocol);
  EXPECT_TRUE(b->received.empty());
}

TEST_F(SessionFencingTest, APeerThatLeavesOutMoreFramesThanItMayIsFenced) {
  // Every other frame of a's, of which three gaps are allowed.
  limits.gaps = 3;
  b = begin(1, 201);
  connect();
  deliver_all();
  const auto body = make_protobuf_codec()->encode(SessionEnd::message(1));
  const auto arrives = [&](uint64_t sequence) {
    b->runtime->post([&] {
      b->sessions.on_frame(
          WorkerId{0},
          {.header = {.source = {100}, .destination = {201}, .sequence = sequence}, .body = body});
    });
  };
  for (const uint64_t sequence : {2, 4, 6, 3, 8, 5, 10}) arrives(sequence);
  EXPECT_TRUE(b->fenced.empty());
  EXPECT_EQ(b->sessions.gaps_peak(), 3u);
  arrives(12);
  ASSERT_EQ(b->fenced.size(), 1u);
  EXPECT_EQ(b->fenced[0].why.kind, ErrorKind::protocol);
  EXPECT_NE(b->fenced[0].why.text.find("broke the protocol: Frame.sequence"), std::string::npos);
  EXPECT_EQ(b->received.size(), 7u);
  EXPECT_TRUE(b->sessions.all_received(WorkerId{0}));  // Nothing of it stays.
}

TEST_F(SessionFencingTest, AMessageFrameWithoutABodyFencesItsSender) {
  a->send(1, 1);
  auto item = network.take(0);
  item.frame.body = nullptr;
  network.put(item);
  deliver_all();
  EXPECT_EQ(b->fenced.at(0).why.kind, ErrorKind::protocol);
}

TEST_F(SessionFencingTest, AFrameThatSaysFencedFencesItsSender) {
  a->send(1, 1);
  auto item = network.take(0);
  item.frame = {.header = {.kind = FrameKind::fenced, .source = {100}, .destination = {200}},
                .body = nullptr};
  network.put(item);
  deliver_all();
  EXPECT_EQ(b->fenced.at(0).why.kind, ErrorKind::fenced);
}

// ---- changed tensors ----

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
  first.arguments.values = std::string(40'000, 'x');
  a->send(1, Message{first}, {.waits_for_room = true});
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
