// The looks into a cluster: of oracles, of invariants, and of a debugger.
#include <array>
#include <cstdio>
#include <utility>

#include "core/base/check.h"
#include "sim/oracles/oracles.h"
#include "sim/world/cluster_parts.h"
#include "sim/world/judged_values.h"
#include "sim/world/stack_words.h"

namespace rehearsal::sim {
namespace {

constexpr uint64_t kRareCheckInterval = 4096;  // when only progress is watched

// So often, at least, the oracles look during the time in which something has to move forward.
constexpr int kChecksInProgressBound = 8;

// A timer is late by what is drawn for it, and what it does waits for the strand.
constexpr Duration kTimerLate = std::chrono::milliseconds(50);

}  // namespace

void ClusterParts::add_judges() {
  add_judge(make_deadlock(waits_seen_));  // Where nothing can happen any more, it knows better why.
  add_judge(make_progress(options_.progress_bound, names_));
  add_judge(make_destructors());
  add_judge(make_leaked_references(options_.strict_leaks && !mad_, report_.leaks));
  if (options_.devices > 0) add_judge(make_device_waits());
  if (options_.oracles) {
    add_judge(make_at_most_once());
    add_judge(make_completion(kTimerLate + (strategy_ ? 4 * window() : Duration{})));
    add_judge(make_context_pairing());
    if (!mad_) {  // It may use references and step as it likes, also through others.
      add_oracle(make_rref_conservation());
      add_oracle(make_optimizer());
    }
    add_judge(make_fencing());
    if (!mad_) add_oracle(make_losses(program_.is_dynamic()));
    add_judge(make_back_pressure(node_options(WorkerId{0}, 0).window_frames));
    add_judge(make_no_leak(/*lied_to=*/mad_ != nullptr));
    add_judge(make_invariants());
    add_judge(make_promptness());
  }
}

void ClusterParts::check(bool idle) {
  until_check_ = options_.oracles && options_.check_interval > 0 ? options_.check_interval
                                                                 : kRareCheckInterval;
  checked_at_ = world_.queue.now();
  const ClusterView cluster = view(idle);
  for (const auto& oracle : oracles_) oracle->check(cluster, recorder_.findings());
}

// Before time goes on to `next`. In the calm hours may pass between two events: whoever only looks
// after some of them does not see what they passed for.
bool ClusterParts::is_check_due(Instant next) const {
  return calm_ && next - checked_at_ > options_.progress_bound / kChecksInProgressBound;
}

ClusterView ClusterParts::view(bool idle) const {
  ClusterView cluster{.now = world_.queue.now(),
                      .calm = calm_,
                      .calm_since = calm_since_,
                      .disturbed = disturbed(),
                      .may_be_silent = may_be_silent(),
                      .untroubled = untroubled(),
                      .idle = idle,
                      .acts_until = acts_until_,
                      .turns = world_.turns,
                      .dynamic = program_.is_dynamic()};
  cluster.lives.reserve(names_.size());
  for (const auto& lives : lives_)
    for (const auto& life : lives) cluster.lives.push_back(life->view());
  return cluster;
}

void ClusterParts::add_invariant(NamedInvariant invariant) {
  REHEARSAL_CHECK(!begun_, "invariants are added before the run begins");
  invariants_.push_back(std::move(invariant));
  world_.between_events = [this] { judge_values(); };
}

// Values change where code of the program runs, and go where a worker does.
void ClusterParts::judge_values() {
  if (mad_ || invariants_.empty() || world_.turns == turns_judged_ || failed()) return;
  turns_judged_ = world_.turns;
  std::vector<Values::Place> places;
  places.reserve(names_.size());
  for (uint32_t i = 0; i < names_.size(); ++i) {
    const bool is_there = !lives_[i].empty() && !lives_[i].back()->over();
    places.push_back({names_[i], is_there ? &lives_[i].back()->node() : nullptr});
  }
  const Values values(std::move(places), world_.queue.now());
  for (const NamedInvariant& invariant : invariants_)
    if (const auto broken = contradiction(invariant, values))
      recorder_.findings().fail(invariant.name, "the values", *broken);
}

std::vector<fibers::StackView> ClusterParts::stacks() const {
  std::vector<fibers::StackView> views;
  for (const auto& lives : lives_) {
    if (lives.empty()) continue;
    Life& life = *lives.back();
    const WaitViews waits = life.over() ? WaitViews{} : life.node().waits();
    for (auto& [execution, view] : life.runtime().stack_parts()) {
      view.worker = life.name();
      if (view.label == view.worker) view.label = "main";
      view.state = state_of(execution, std::move(view.state), waits, names_);
      views.push_back(std::move(view));
    }
  }
  return views;
}

std::string ClusterParts::describe_workers() const {
  const Duration time = world_.queue.now().time_since_epoch();
  std::array<char, 120> line{};
  std::snprintf(line.data(), line.size(), "seed %llu, event %llu, %.6f s of virtual time\n",
                static_cast<unsigned long long>(seed_.value),
                static_cast<unsigned long long>(recorder_.fingerprint().events()),
                static_cast<double>(time.count()) / 1e9);
  std::string text = line.data();
  const std::vector<fibers::StackView> views = stacks();
  for (uint32_t i = 0; i < names_.size(); ++i) text += "  " + describe_worker(i, views) + "\n";
  return text;
}

std::string ClusterParts::describe_worker(uint32_t rank,
                                          const std::vector<fibers::StackView>& views) const {
  const std::string& name = names_[rank];
  if (lives_[rank].empty()) return name + " has not begun";
  Life& life = *lives_[rank].back();
  std::string text = name;
  if (life.id().life > 0) text += " in life " + std::to_string(life.id().life);
  if (life.crashed()) return text + " has crashed";
  if (life.over())
    return text + (life.result()->ok() ? std::string(" has ended")
                                       : " has failed: " + to_string(life.result()->error()));
  std::string parts = life.runtime().running_part();
  for (const fibers::StackView& view : views)
    if (view.worker == name) parts += (parts.empty() ? "" : "; ") + view.label + " " + view.state;
  return text + ": " + (parts.empty() ? "nothing runs" : parts);
}

}  // namespace rehearsal::sim
