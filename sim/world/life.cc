#include "sim/world/life.h"

#include <utility>

#include "core/base/check.h"
#include "sim/device/machine.h"

namespace rehearsal::sim {

Life::Life(NodeOptions options, const Program& program, LifeId id, Environment environment)
    : id_(id),
      name_(options.names[id.worker.value]),
      incarnation_(options.incarnation),
      recorder_(environment.recorder),
      queue_(environment.world.queue),
      on_main_ended_(std::move(environment.on_main_ended)),
      runtime_(std::make_shared<SimRuntime>(environment.world, id)),
      devices_(std::move(environment.devices)),
      transport_(environment.network, id.worker,
                 {.life = id.life, .runtime = runtime_.get(), .pool = &environment.pool}),
      tapped_(transport_, environment.listener),
      listener_(environment.listener) {
  runtime_->set_devices(devices_);
  node_ = std::make_unique<Node>(std::move(options), program,
                                 Node::Environment{.runtime = runtime_,
                                                   .executions = runtime_.get(),
                                                   .transport = &tapped_,
                                                   .trace = this,
                                                   .checkpoints = &environment.disk});
  runtime_->set_on_stopped([this] { runtime_->post([this] { node_->kill(); }); });
  transport_.start(node_->hello(), *this);
}

Life::~Life() {
  discard_node();
  if (devices_) devices_->end();
}

void Life::start() {
  runtime_->post([this] {
    runtime_->execute(node_->main_execution(), StackPlacement::pool, [this] {
      result_.emplace(node_->run_main());
      ended_ = queue_.now();
      on_main_ended_();
    });
  });
}

void Life::crash() {
  if (over()) return;
  crashed_ = true;
  ended_ = queue_.now();
  transport_.crash();
  runtime_->post([this] { node_->kill(); });
  runtime_->kill();
  REHEARSAL_CHECK(runtime_->live_stacks() == 0, name_, runtime_->describe_stacks());
}

void Life::abandon() {
  if (!over()) return crash();
  if (runtime_->live_stacks() == 0) return;
  runtime_->post([this] { node_->kill(); });
  runtime_->kill();
}

void Life::discard_node() {
  if (node_ == nullptr) return;
  REHEARSAL_CHECK(over(), name_, "is still alive");
  transport_.stop();
  if (runtime_->live_stacks() > 0) {  // They outlive their main, as an oracle has said by now.
    runtime_->post([this] { node_->kill(); });
    runtime_->kill();
  }
  // Stacks that stay may use its values, and hold locks that are among them.
  const bool stays = runtime_->stacks_left() > 0;
  if (!stays) runtime_->post([this] { node_->let_go(); });
  runtime_->detach();
  if (stays) runtime_->keep_for_them(std::move(node_));
  node_.reset();
}

LifeView Life::view() const {
  const SimRuntime::Busy busy = runtime_->busy();
  return {.id = id_,
          .name = name_,
          .incarnation = incarnation_,
          .node = node_.get(),
          .census_at_end = node_ && node_->census_at_end() ? &*node_->census_at_end() : nullptr,
          .crashed = crashed_,
          .result = result_ ? &*result_ : nullptr,
          .ended = ended_,
          .live_stacks = runtime_->live_stacks(),
          .timers_at_stop = timers_at_stop_,
          .busy_label = busy.label,
          .busy_turns = busy.turns,
          .device_problems = devices_ ? &devices_->problems() : nullptr};
}

void Life::on_event(const Event& event) {
  if (event.kind == EventKind::node_stopped) timers_at_stop_ = runtime_->pending_timers();
  recorder_.on_event(event, id_, incarnation_, std::exchange(tensors_, 0));
}

void Life::on_frame(WorkerId peer, Frame frame) {
  if (frame.body != nullptr) {
    for (const Segment& segment : frame.body->segments)
      tensors_ = hash_bytes(segment.data, segment.bytes, tensors_ + 1);
    if (listener_ != nullptr) listener_->overhear(frame.body);
  }
  node_->sink().on_frame(peer, std::move(frame));
}

}  // namespace rehearsal::sim
