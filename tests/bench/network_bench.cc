// The simulated network alone: frames between two transports, without a protocol above them.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>

#include "net_fake/fake_transport.h"
#include "net_fake/network.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/world/heap_pool.h"
#include "sim/world/sim_runtime.h"

namespace rehearsal::sim {
namespace {

// Sends back every frame that it gets.
class Reflector final : public FrameSink {
 public:
  void use(net_fake::FakeTransport& transport) { transport_ = &transport; }
  Position position(WorkerId) const override { return {}; }
  void on_peer_up(const Hello& hello) override { peer_ = hello.worker; }
  void on_frame(WorkerId peer, Frame frame) override {
    ++arrived_;
    frame.header.sequence = ++sequence_;
    transport_->send(peer, std::move(frame));
  }
  void on_peer_lost(WorkerId, const Error&, bool) override {}
  void on_drained(WorkerId) override {}
  void on_refused(WorkerId, const Refusals&) override {}

  void begin(const std::shared_ptr<const FrameBody>& body) {
    transport_->send(peer_, {.header = {.sequence = ++sequence_}, .body = body});
  }
  [[nodiscard]] uint64_t arrived() const { return arrived_; }

 private:
  net_fake::FakeTransport* transport_ = nullptr;
  WorkerId peer_;
  uint64_t sequence_ = 0;
  uint64_t arrived_ = 0;
};

// Two ends and so many frames between them that go to and fro for ever.
class Court {
 public:
  Court() {
    world_.decisions = &decisions_;
    for (uint32_t i = 0; i < 2; ++i) {
      runtimes_[i] = std::make_shared<SimRuntime>(world_, LifeId{WorkerId{i}, 0});
      transports_[i] = std::make_unique<net_fake::FakeTransport>(
          network_, WorkerId{i},
          net_fake::FakeTransport::Options{.runtime = runtimes_[i].get(), .pool = &pool_});
      sinks_[i].use(*transports_[i]);
      transports_[i]->start({.worker = {i}, .incarnation = {i + 1}}, sinks_[i]);
    }
    for (uint32_t i = 0; i < 2; ++i)
      runtimes_[i]->post([this, i] { transports_[i]->open(WorkerId{1 - i}); });
    while (step()) {
    }
  }
  ~Court() {
    for (uint32_t i = 0; i < 2; ++i) {
      transports_[i]->stop();
      runtimes_[i]->detach();
    }
  }

  void begin(int64_t frames) {
    auto body = std::make_shared<FrameBody>();
    body->envelope.assign(64, 'x');
    for (int64_t i = 0; i < frames; ++i) runtimes_[0]->post([&] { sinks_[0].begin(body); });
  }
  // False if nothing is to happen.
  bool step() {
    const auto next = world_.queue.peek();
    if (!next) return false;
    world_.queue.take(*next);
    next->what->happen(next->ticket);
    return true;
  }
  [[nodiscard]] uint64_t arrived() const { return sinks_[0].arrived() + sinks_[1].arrived(); }

 private:
  World world_;
  KeyedDecisions decisions_{Seed{1}, {}};
  HeapPool pool_;
  net_fake::Network network_{world_.queue, decisions_, {"first", "second"}};
  std::array<std::shared_ptr<SimRuntime>, 2> runtimes_;
  std::array<std::unique_ptr<net_fake::FakeTransport>, 2> transports_;
  std::array<Reflector, 2> sinks_;
};

// A frame sent, carried by the link for a drawn time, delivered and answered.
void sim_network_events(benchmark::State& state) {
  Court court;
  court.begin(state.range(0));
  for (auto _ : state)
    if (!court.step()) return state.SkipWithError("nothing moves any more");
  if (court.arrived() < static_cast<uint64_t>(state.iterations()))
    state.SkipWithError("not every event was a frame");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(sim_network_events)->Arg(1)->Arg(100);

}  // namespace
}  // namespace rehearsal::sim
