// The end of a run: which main is to blame, and what the report says.
#include <algorithm>
#include <utility>

#include "sim/world/cluster_parts.h"

namespace rehearsal::sim {

void ClusterParts::finish() {
  finished_ = true;
  // A missing wait comes before the result that it made wrong.
  if (!failed() && options_.devices > 0) {
    const ClusterView cluster = view(/*idle=*/false);
    for (const auto& oracle : oracles_) oracle->check(cluster, recorder_.findings());
  }
  if (!failed()) judge_mains();
  if (!failed()) {
    const ClusterView cluster = view(/*idle=*/false);
    for (const auto& oracle : oracles_) oracle->at_end(cluster, recorder_.findings());
  }
  stop_recording_history();
  fill_report();
}

// A worker that another's crash makes fail is no failure of the run. Where one main's failure made
// others fail, the first that no crash explains is the one to tell of.
void ClusterParts::judge_mains() {
  const auto explained = [this](const Life& life) {
    if (mad_) return true;  // It may have been told anything.
    const auto& allowed = options_.errors_after_crash;
    return std::find(allowed.begin(), allowed.end(), life.result()->error().kind) != allowed.end();
  };
  const Life* blamed = nullptr;
  for (const auto& lives : lives_) {
    if (lives.empty()) continue;  // Its time to come had not come when the run failed.
    const Life& life = *lives.back();
    if (!life.result() || life.result()->ok() || (disturbed() && explained(life))) continue;
    if (blamed == nullptr ||
        std::pair(explained(life), life.ended()) < std::pair(explained(*blamed), blamed->ended()))
      blamed = &life;
  }
  if (blamed == nullptr) return;
  const Error& error = blamed->result()->error();
  std::string text = to_string(error);
  if (const std::string place = throws_ ? throws_->place_of(error) : ""; !place.empty())
    text += "\n" + place;
  if (const std::string& waits = waits_at_timeout_[blamed->id().worker.value]; !waits.empty())
    text += "; who waited for what then:\n" + waits;
  recorder_.findings().fail("main", "worker '" + blamed->name() + "'", text);
  if (history_) history_->on_main_failed(blamed->id());
}

// The waits of a worker that has failed are over: of it those of the last look are told.
void ClusterParts::note_waits(const Life& ended) {
  if (ended.result()->ok() || ended.result()->error().kind != ErrorKind::timeout) return;
  if (waits_seen_.empty()) return;
  std::vector<NodeWaits> waits = waits_of(view(/*idle=*/false));
  const auto of = [](WorkerId worker) {
    return [worker](const NodeWaits& node) { return node.worker == worker; };
  };
  for (const NodeWaits& before : waits_seen_)
    if (std::none_of(waits.begin(), waits.end(), of(before.worker))) waits.push_back(before);
  std::sort(waits.begin(), waits.end(),
            [](const NodeWaits& one, const NodeWaits& other) { return one.worker < other.worker; });
  waits_at_timeout_[ended.id().worker.value] = describe_wait_graph(waits);
}

void ClusterParts::report_choices() {
  report_.choices = decisions_.choices();
  for (const Key& key : decisions_.absent())
    report_.absent_overrides.push_back(net_fake::to_string(key));
}

void ClusterParts::fill_report() {
  report_.ok = !failed();
  report_.fingerprint = to_hex(recorder_.fingerprint().value());
  report_.checkpoints = recorder_.fingerprint().checkpoints();
  report_.virtual_time = over_at_.time_since_epoch();
  report_.calls = recorder_.calls();
  report_.network = network_.stats();
  for (const auto& lives : lives_)
    for (const auto& life : lives) report_.stacks_left += life->runtime().stacks_left();
  report_.messages = report_.network.messages;
  report_.draws = decisions_.draws();
  report_.deviations = decisions_.notes();
  report_.widths = world_.queue.widths();
  report_.counts = profile_.counts();
  report_.crashes = crash_count_;
  report_.pauses = machines_ ? machines_->pauses() : 0;
  report_.clock_jumps = machines_ ? machines_->jumps() : 0;
  report_.faults = plan_.describe(names_);
  report_choices();
  for (uint32_t i = 0; i < names_.size(); ++i) {
    report_.decisions += decisions_of_[i];
    WorkerReport worker{.name = names_[i],
                        .lives = static_cast<uint32_t>(lives_[i].size()),
                        .crashed = false,
                        .error = {},
                        .decisions = decisions_of_[i]};
    if (!lives_[i].empty()) {
      const Life& last = *lives_[i].back();
      worker.crashed = last.crashed();
      if (last.result() && !last.result()->ok()) worker.error = last.result()->error();
    }
    report_.workers.push_back(std::move(worker));
  }
  if (const auto& finding = recorder_.findings().first())
    report_.failure = {finding->oracle, finding->object, finding->message};
  report_.reproduction = reproduction();
}

std::string ClusterParts::reproduction() const {
  if (!options_.reproduction.empty()) return options_.reproduction;
  return "the same program and options with Seed{" + std::to_string(seed_.value) + "}";
}

}  // namespace rehearsal::sim
