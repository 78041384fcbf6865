#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/session/session.h"
#include "core/wire/protobuf_codec.h"
#include "tests/core/recording_trace.h"
#include "tests/core/scripted_network.h"
#include "tests/core/test_runtime.h"

namespace rehearsal {

// from, from + 1, … up to the one before `to`.
inline std::vector<uint64_t> numbers(uint64_t from, uint64_t to) {
  std::vector<uint64_t> list(to - from);
  std::iota(list.begin(), list.end(), from);
  return list;
}

// One life of a worker whose sessions are tested: keeps what they report.
class SessionEnd final : public SessionListener {
 public:
  struct Fenced {
    WorkerId peer;
    Incarnation incarnation;
    Error why;
  };

  SessionEnd(doubles::TestWorld& world, doubles::ScriptedNetwork& network, SessionOptions options)
      : options_(std::move(options)),
        runtime(std::make_shared<doubles::TestRuntime>(world)),
        strand(std::make_shared<NodeStrand>(runtime, runtime.get(), &trace, options_.self,
                                            options_.names[self()], Seed{1})),
        sessions(options_, *strand, network.end(self()), *codec_, *this) {
    network.attach(self(), *runtime, sessions,
                   {options_.self, options_.incarnation, "hello of " + strand->name()});
  }

  void start() {
    runtime->post([this] { sessions.start(); });
  }
  void send(uint32_t to, uint64_t number, SendOptions options = {}) {
    runtime->post([&] { sessions.send(WorkerId{to}, message(number), std::move(options)); });
  }
  void send(uint32_t to, Message message, SendOptions options = {}) {
    runtime->post([&] { sessions.send(WorkerId{to}, std::move(message), std::move(options)); });
  }
  void fence(uint32_t peer, const Error& why) {
    runtime->post([&] { sessions.fence(WorkerId{peer}, why); });
  }

  // A message that is only a number, and a call that waits for room.
  static Message message(uint64_t number) { return Message{Cancel{CallId{id(number)}}}; }
  static Message call(uint64_t number) { return Message{Call{.id = CallId{id(number)}}}; }
  static CausalId id(uint64_t number) { return {{1}, {0, 0}, number}; }

  // SessionListener.
  void on_message(WorkerId from, Message&& message) override {
    received.push_back(causal_id_of(message).ordinal);
    messages.emplace_back(from, std::move(message));
    if (on_received) on_received();
  }
  void on_peer_joined(const Hello& hello) override { joined.push_back(hello.incarnation); }
  void on_peer_fenced(WorkerId peer, Incarnation incarnation, const Error& why) override {
    fenced.push_back({peer, incarnation, why});
  }
  Status check_hello(const Hello&) override {
    if (refuse_hello) return *refuse_hello;
    return Unit{};
  }
  void on_hello_refused(WorkerId, const Error& why) override { refused.push_back(why); }
  bool may_have_left(WorkerId) const override { return peer_may_have_left; }

  [[nodiscard]] uint32_t self() const { return options_.self.value; }

 private:
  const SessionOptions options_;
  const std::unique_ptr<Codec> codec_ = make_protobuf_codec();

 public:
  doubles::RecordingTrace trace;
  const std::shared_ptr<doubles::TestRuntime> runtime;
  const std::shared_ptr<NodeStrand> strand;
  Sessions sessions;
  std::vector<uint64_t> received;
  std::vector<std::pair<WorkerId, Message>> messages;
  std::vector<Incarnation> joined;
  std::vector<Fenced> fenced;
  std::vector<Error> refused;
  MaybeError refuse_hello;
  bool peer_may_have_left = false;
  std::function<void()> on_received;
};

// Two workers, a and b, with a link between them.
class SessionFixture : public ::testing::Test {
 protected:
  static constexpr Duration kPeerTimeout = std::chrono::seconds(8);
  static constexpr Duration kHeartbeat = std::chrono::milliseconds(500);
  static constexpr Duration kRefusalLimit = std::chrono::milliseconds(1500);

  SessionFixture() {
    a = begin(0, 100);
    b = begin(1, 200);
    connect();
  }

  SessionOptions options(uint32_t self, uint64_t incarnation) const {
    return {.self = {self},
            .incarnation = {incarnation},
            .names = names,
            .peer_timeout = peer_timeouts.at(self),
            .heartbeat = heartbeat,
            .refusal_limit = refusal_limit,
            .window_bytes = window_bytes,
            .window_frames = window_frames,
            .limits = limits,
            .grouped = grouped,
            .mutants = mutants};
  }
  // A worker's life begins. Former lives stay: their timers are still in the world.
  SessionEnd* begin(uint32_t self, uint64_t incarnation) {
    for (const auto& end : ends_)
      if (end->self() == self) end->sessions.stop();
    ends_.push_back(std::make_unique<SessionEnd>(world, network, options(self, incarnation)));
    ends_.back()->start();
    return ends_.back().get();
  }
  void connect() { network.connect(0, 1); }
  void cut() { network.cut(0, 1); }
  void deliver_all() { network.deliver_all(); }
  // The first frame from this worker arrives, if there is one: a lane keeps its order.
  bool deliver_next_from(uint32_t from) {
    for (size_t at = 0; at < network.in_flight().size(); ++at) {
      if (network.in_flight()[at].from != WorkerId{from}) continue;
      network.deliver(at);
      return true;
    }
    return false;
  }
  // Where the n-th frame from this worker lies.
  size_t find(uint32_t from, size_t n = 0) const {
    for (size_t at = 0; at < network.in_flight().size(); ++at)
      if (network.in_flight()[at].from == WorkerId{from} && n-- == 0) return at;
    ADD_FAILURE() << "no such frame";
    return 0;
  }

  std::vector<std::string> names = {"a", "b"};
  std::vector<Duration> peer_timeouts = {kPeerTimeout, kPeerTimeout, kPeerTimeout};
  Duration heartbeat = kHeartbeat;
  uint64_t window_bytes = 1 << 20;
  uint64_t window_frames = 64;
  PeerLimits limits;
  Duration refusal_limit = kRefusalLimit;
  bool grouped = false;
  Mutants mutants;
  doubles::TestWorld world;
  doubles::ScriptedNetwork network{3};
  SessionEnd* a = nullptr;
  SessionEnd* b = nullptr;

 private:
  std::vector<std::unique_ptr<SessionEnd>> ends_;
};

}  // namespace rehearsal
