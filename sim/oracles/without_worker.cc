#include <set>
#include <utility>

#include "sim/oracles/oracles.h"

namespace rehearsal::sim {
namespace {

// The ids that a worker makes twice because the one that is left out has made it run a call again:
// by the id of one that it had answered, so that the second run makes the same ids as the first. So
// do the executions that these start.
class RepeatedIds {
 public:
  explicit RepeatedIds(WorkerId liar) : liar_(liar) {}

  static EventKinds watched() { return {EventKind::execution_started, EventKind::call_executed}; }

  void on_event(const Observation& seen) {
    const Event& event = seen.event;
    if (!watched().has(event.kind)) return;
    const bool again = event.kind == EventKind::call_executed && event.peer == liar_ &&
                       !executed_.emplace(seen.life, event.id).second;
    if (again || made(event.id)) paths_.insert(event.id.execution_path());
  }

  [[nodiscard]] bool made(const CausalId& id) const { return paths_.contains(id.path); }

 private:
  const WorkerId liar_;
  std::set<std::pair<net_fake::LifeId, CausalId>> executed_;  // the liar's calls
  std::set<Hash128> paths_;
};

class WithoutWorker final : public Oracle {
 public:
  WithoutWorker(WorkerId left_out, std::unique_ptr<Oracle> oracle)
      : left_out_(left_out), oracle_(std::move(oracle)), told_(oracle_->watched()) {}

  std::string_view name() const override { return oracle_->name(); }
  EventKinds watched() const override { return told_ + RepeatedIds::watched(); }

  // It is told of what a repeated id does, too, and nothing that it finds in that counts.
  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    if (seen.life.worker == left_out_) lives_.insert(seen.incarnation);
    if (seen.life.worker == left_out_) return;
    repeated_.on_event(seen);
    if (!told_.has(event.kind) || event.peer == left_out_) return;
    if (lives_.contains(event.id.incarnation)) return;
    Findings of_a_lie;
    oracle_->on_event(seen, repeated_.made(event.id) ? of_a_lie : findings);
  }

  void on_crash(const LifeView& life) override {
    if (life.id.worker != left_out_) oracle_->on_crash(life);
  }

  void check(const ClusterView& cluster, Findings& findings) override {
    oracle_->check(others(cluster), findings);
  }

  void at_end(const ClusterView& cluster, Findings& findings) override {
    oracle_->at_end(others(cluster), findings);
  }

 private:
  [[nodiscard]] ClusterView others(ClusterView cluster) {
    for (const LifeView& life : cluster.lives)
      if (life.id.worker == left_out_) lives_.insert(life.incarnation);
    std::erase_if(cluster.lives,
                  [this](const LifeView& life) { return life.id.worker == left_out_; });
    return cluster;
  }

  const WorkerId left_out_;
  const std::unique_ptr<Oracle> oracle_;
  const EventKinds told_;
  std::set<Incarnation> lives_;  // of the worker
  RepeatedIds repeated_{left_out_};
};

}  // namespace

std::unique_ptr<Oracle> without_worker(WorkerId left_out, std::unique_ptr<Oracle> oracle) {
  return std::make_unique<WithoutWorker>(left_out, std::move(oracle));
}

}  // namespace rehearsal::sim
