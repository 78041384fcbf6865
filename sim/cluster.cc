#include "sim/cluster.h"

#include <utility>

#include "core/fibers/thread_state.h"
#include "sim/hunt/run_watch.h"
#include "sim/world/clock_guard.h"
#include "sim/world/cluster_parts.h"

namespace rehearsal::sim {
namespace {

// Held while the cluster runs.
struct Guards {
  explicit Guards(ClusterParts& parts)
      : watch(parts.pulse(), parts.watchdog(), parts.reproduction()) {
    parts.look_outside();
  }
  const RunWatch watch;
  const ClockGuard clock;
};

}  // namespace

Cluster::Cluster(Seed seed, const Program& program, ClusterOptions options)
    : parts_(std::make_unique<ClusterParts>(seed, program, std::move(options))) {}

Cluster::~Cluster() {
  const Guards guards(*parts_);
  parts_.reset();
}

net_fake::Network& Cluster::network() { return parts_->network(); }

void Cluster::add_oracle(std::unique_ptr<Oracle> oracle) { parts_->add_oracle(std::move(oracle)); }

void Cluster::add_invariant(std::string name, Invariant broken) {
  parts_->add_invariant({std::move(name), std::move(broken)});
}

void Cluster::at(Duration since_start, std::function<void()> action) {
  parts_->at(Instant{} + since_start, std::move(action));
}

const RunReport& Cluster::try_run() {
  const Guards guards(*parts_);
  parts_->run_to_end();
  return parts_->report();
}

const RunReport& Cluster::run() {
  const RunReport& report = try_run();
  if (!report.ok) throw RunFailed(report);
  return report;
}

bool Cluster::run_until(const std::function<bool()>& holds, Duration limit) {
  const fibers::DefaultThreadState state;
  const Guards guards(*parts_);
  parts_->begin();
  const Instant last = now() + limit;
  while (!holds())
    if (!parts_->step(last)) return false;
  return true;
}

void Cluster::run_until_quiet(Duration gap) {
  const fibers::DefaultThreadState state;
  const Guards guards(*parts_);
  parts_->begin();
  while (parts_->step(now() + gap)) {
  }
}

void Cluster::advance(Duration time) {
  const fibers::DefaultThreadState state;
  const Guards guards(*parts_);
  parts_->begin();
  const Instant end = now() + time;
  while (parts_->step(end)) {
  }
  parts_->queue().move_to(end);
}

void Cluster::crash(std::string_view worker) {
  const Guards guards(*parts_);
  parts_->crash({.worker = network().worker_named(worker)});
}

void Cluster::restart(std::string_view worker) { parts_->restart(network().worker_named(worker)); }

void Cluster::lose_disk(std::string_view worker) {
  parts_->lose_disk(network().worker_named(worker));
}

void Cluster::pause(std::string_view worker, Duration time) {
  parts_->pause(network().worker_named(worker), time);
}

Instant Cluster::now() const { return parts_->queue().now(); }

Node& Cluster::node(std::string_view worker) {
  parts_->begin();
  return parts_->life(network().worker_named(worker)).node();
}

bool Cluster::alive(std::string_view worker) const {
  return !parts_->life(parts_->network().worker_named(worker)).over();
}

uint32_t Cluster::life(std::string_view worker) const {
  return parts_->life(parts_->network().worker_named(worker)).id().life;
}

std::optional<net_fake::LifeId> Cluster::running() const { return parts_->running(); }

const Status* Cluster::result(std::string_view worker) const {
  const auto& result = parts_->life(parts_->network().worker_named(worker)).result();
  return result ? &*result : nullptr;
}

}  // namespace rehearsal::sim
