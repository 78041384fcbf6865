#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/api/program.h"
#include "core/node/node.h"
#include "net_fake/fake_transport.h"
#include "sim/oracle.h"
#include "sim/world/event_collector.h"
#include "sim/world/mad_worker.h"
#include "sim/world/sim_runtime.h"

namespace rehearsal::sim {

// One life of a simulated worker: its Runtime, its transport and its Node, from the start of its
// main to the main's end or a crash. The node is kept until `discard_node`, for those who look at
// it.
class Life final : private Trace, private FrameSink {
 public:
  struct Environment {
    World& world;
    net_fake::Network& network;
    BufferPool& pool;
    EventCollector& recorder;
    Checkpoints& disk;
    std::function<void()> on_main_ended;
    Eavesdropper* listener = nullptr;                    // hears its messages; null: nobody
    std::shared_ptr<device::Machine> devices = nullptr;  // the simulated ones that it has
  };

  Life(NodeOptions options, const Program& program, LifeId id, Environment environment);
  ~Life() override;

  // Schedules the worker's main.
  void start();

  // Ends the life as a crash of the process does. Every stack has unwound when it returns.
  void crash();

  // The same for a run that has failed, in which a main may have ended before its worker's stacks.
  void abandon();

  // Destroys the node. REQUIRES: the main has ended or the life has crashed.
  void discard_node();

  [[nodiscard]] LifeId id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Node& node() { return *node_; }
  [[nodiscard]] SimRuntime& runtime() { return *runtime_; }
  [[nodiscard]] bool crashed() const { return crashed_; }
  [[nodiscard]] bool over() const { return crashed_ || result_.has_value(); }
  [[nodiscard]] const std::optional<Status>& result() const { return result_; }
  // When the main ended or the life crashed, in virtual time.
  [[nodiscard]] Instant ended() const { return ended_; }
  [[nodiscard]] LifeView view() const;

 private:
  void on_event(const Event& event) override;

  // The network's input reaches the node by way of here: the node's events say nothing of the
  // tensors that come with a frame.
  Position position(WorkerId peer) const override { return node_->sink().position(peer); }
  void on_peer_up(const Hello& hello) override { node_->sink().on_peer_up(hello); }
  void on_frame(WorkerId peer, Frame frame) override;
  void on_peer_lost(WorkerId peer, const Error& why, bool closed_by_peer) override {
    node_->sink().on_peer_lost(peer, why, closed_by_peer);
  }
  void on_drained(WorkerId peer) override { node_->sink().on_drained(peer); }
  void on_refused(WorkerId peer, const Refusals& refusals) override {
    node_->sink().on_refused(peer, refusals);
  }

  const LifeId id_;
  const std::string name_;
  const Incarnation incarnation_;
  EventCollector& recorder_;
  const EventQueue& queue_;
  const std::function<void()> on_main_ended_;
  const std::shared_ptr<SimRuntime> runtime_;
  const std::shared_ptr<device::Machine> devices_;  // null: it has none
  net_fake::FakeTransport transport_;
  TappedTransport tapped_;
  Eavesdropper* const listener_;
  std::unique_ptr<Node> node_;
  std::optional<Status> result_;
  Instant ended_{};
  bool crashed_ = false;
  uint64_t tensors_ = 0;         // a hash of those that came since the last event
  uint64_t timers_at_stop_ = 0;  // see LifeView
};

}  // namespace rehearsal::sim
