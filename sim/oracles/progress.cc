#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"
#include "sim/oracles/retries.h"
#include "sim/oracles/wait_graph.h"
#include "sim/oracles/words.h"

namespace rehearsal::sim {
namespace {

// They say that somebody got further, and not only that somebody still tries.
constexpr EventKinds kMovesForward{EventKind::api_call,          EventKind::call_executed,
                                   EventKind::call_completed,    EventKind::execution_started,
                                   EventKind::execution_ended,   EventKind::owner_dropped,
                                   EventKind::context_released,  EventKind::pass_ended,
                                   EventKind::optimizer_stepped, EventKind::node_stopped};

// A program that polls pauses shortly, again and again. A pause that is at least such a part of the
// bound is one whose end the program means to reach.
constexpr int kLongPausePart = 4;

// Time that has passed in quiet is looked into after such a part of the bound.
constexpr int kQuietPart = 16;

// A caller may try again for such a part of the bound: a program may do so for a minute or two
// before it gives up, and when all is healed, or a worker has come back, links take their time.
constexpr int kRetriesPart = 4;

// So often code of the program may run without a call that has a value.
constexpr uint64_t kTurnsWithoutValueMax = 10'000'000;

// So often code may go on in an instant of virtual time with calls that fail at once. Code that
// waits for them takes time.
constexpr uint64_t kFailuresInInstantMax = 100'000;

// So many turns code may have whose worker has ended, and never wait.
constexpr uint64_t kTurnsAfterTheEndMax = 10;

// No later than the last of all instants.
Instant after(Instant now, Duration time) {
  return time < Instant::max() - now ? now + time : Instant::max();
}

// Before something that is due, nothing need move forward.
Instant reached(Instant due, const ClusterView& cluster) { return std::min(due, cluster.now); }

class Progress final : public QuietOracle {
 public:
  Progress(Duration bound, std::vector<std::string> names)
      : bound_(bound), retries_(std::move(names)) {}

  std::string_view name() const override { return "progress"; }
  EventKinds watched() const override {
    return kMovesForward + EventKinds{EventKind::pass_started, EventKind::peer_fenced};
  }

  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    const FailingCalls::Streak* const failed = retries_.on_event(seen);
    switch (event.kind) {
      case EventKind::api_call:
        before_call_ = last_;
        break;
      case EventKind::call_completed:
        value_seen_ |= event.number == 0;
        if (failed != nullptr && failed->last_at_once) return fail_at_once(seen, *failed, findings);
        break;
      case EventKind::pass_started:
        pass_ = {event.id, seen.when};
        return;
      case EventKind::pass_ended:
        if (!event.text.empty() && pass_ == std::pair(event.id, seen.when)) return;
        value_seen_ |= event.text.empty();
        break;
      case EventKind::peer_fenced:
        return;
      default:
        value_seen_ |= event.kind == EventKind::node_stopped;
        break;
    }
    last_ = seen.when;
  }

  void check(const ClusterView& cluster, Findings& findings) override {
    judge_ended(cluster, findings);
    const Instant settled = std::max(cluster.calm_since, reached(cluster.acts_until, cluster));
    const Instant acted = std::max(last_, settled);
    if (cluster.calm && cluster.now - acted > bound_ / kQuietPart) look_at_pauses(cluster);
    const Instant since = std::max(acted, reached(paused_until_, cluster));
    const bool late = cluster.calm && cluster.now - since > bound_;
    if (late || cluster.idle) tell(cluster, since, findings);
    judge_retries(cluster, settled, findings);
    judge_turns(cluster, findings);
  }

 private:
  // A call that fails as soon as it is made moves nothing forward.
  void fail_at_once(const Observation& seen, const FailingCalls::Streak& streak,
                    Findings& findings) {
    last_ = before_call_;
    if (streak.in_instant < kFailuresInInstantMax) return;
    const Retries::InVain told = retries_.told(seen, streak);
    findings.fail_now(name(), told.caller, told.text + "; it never waits");
  }

  // A pause that was cut short by the end of its worker is over now.
  void look_at_pauses(const ClusterView& cluster) {
    Duration left{};
    for (const LifeView& life : cluster.lives)
      if (runs(life)) left = std::max(left, life.node->pause_left(bound_ / kLongPausePart));
    if (left.count() > 0 || paused_until_ > cluster.now) paused_until_ = after(cluster.now, left);
  }

  void judge_retries(const ClusterView& cluster, Instant settled, Findings& findings) {
    const Instant begun_by = cluster.now - bound_ / kRetriesPart;
    if (!cluster.calm || settled > begun_by) return retries_.forgive();
    const std::optional<Retries::InVain> in_vain = retries_.in_vain(cluster, begun_by);
    if (!in_vain) return;
    if (in_vain->answered) look_at_pauses(cluster);
    if (in_vain->answered && paused_until_ > cluster.now) return retries_.forgive();
    findings.fail(name(), in_vain->caller, in_vain->text);
  }

  void judge_turns(const ClusterView& cluster, Findings& findings) {
    if (std::exchange(value_seen_, false)) turns_at_value_ = cluster.turns;
    if (cluster.turns - turns_at_value_ <= kTurnsWithoutValueMax) return;
    findings.fail(name(), names_of_running(cluster),
                  "code of the program has run " + grouped(kTurnsWithoutValueMax) +
                      " times, and no call has had a value; who waits for what:\n" +
                      describe_waits(cluster));
  }

  // Nobody can wait for it any more, and it has had an error from each of its calls.
  void judge_ended(const ClusterView& cluster, Findings& findings) const {
    for (const LifeView& life : cluster.lives)
      if (life.result != nullptr && life.busy_turns >= kTurnsAfterTheEndMax)
        findings.fail(name(), std::string(life.name),
                      "'" + std::string(life.busy_label) + "' at " + std::string(life.name) +
                          " does not end although its worker has: each of its calls fails, and it "
                          "goes on");
  }

  void tell(const ClusterView& cluster, Instant since, Findings& findings) const {
    std::string why = "nothing will ever happen any more";
    if (!cluster.idle)
      why = "nothing has moved forward for " +
            std::to_string((cluster.now - since) / std::chrono::seconds(1)) +
            " virtual seconds since the faults stopped";
    if (const auto busiest = retries_.busiest(cluster, since))
      return findings.fail(
          name(), busiest->caller,
          busiest->text + "; " + why + "; who waits for what:\n" + describe_waits(cluster));
    findings.fail(name(), names_of_running(cluster),
                  why + "; who waits for what:\n" + describe_waits(cluster));
  }

  const Duration bound_;
  Retries retries_;
  Instant last_{};
  Instant before_call_{};                // what `last_` was when a call was made last
  Instant paused_until_{};               // the program itself lets time pass
  std::pair<CausalId, Instant> pass_{};  // the one that began last, and when
  bool value_seen_ = false;              // since the last check
  uint64_t turns_at_value_ = 0;
};

}  // namespace

std::unique_ptr<Oracle> make_progress(Duration bound, std::vector<std::string> names) {
  return std::make_unique<Progress>(bound, std::move(names));
}

}  // namespace rehearsal::sim
