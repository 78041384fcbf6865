#include <set>
#include <utility>

#include "sim/oracles/oracles.h"

namespace rehearsal::sim {
namespace {

class WithoutWorker final : public Oracle {
 public:
  WithoutWorker(WorkerId left_out, std::unique_ptr<Oracle> oracle)
      : left_out_(left_out), oracle_(std::move(oracle)) {}

  std::string_view name() const override { return oracle_->name(); }
  EventKinds watched() const override { return oracle_->watched(); }

  void on_event(const Observation& seen, Findings& findings) override {
    if (seen.life.worker == left_out_) lives_.insert(seen.incarnation);
    const Event& event = seen.event;
    if (seen.life.worker == left_out_ || event.peer == left_out_) return;
    if (!lives_.contains(event.id.incarnation)) oracle_->on_event(seen, findings);
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
  std::set<Incarnation> lives_;  // of the worker
};

}  // namespace

std::unique_ptr<Oracle> without_worker(WorkerId left_out, std::unique_ptr<Oracle> oracle) {
  return std::make_unique<WithoutWorker>(left_out, std::move(oracle));
}

}  // namespace rehearsal::sim
