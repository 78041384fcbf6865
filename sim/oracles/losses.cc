#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"
#include "sim/oracles/words.h"

namespace rehearsal::sim {
namespace {

// A worker that is refused stops within this.
constexpr Duration kRefused = std::chrono::seconds(2);
// One that leaves a dynamic group has left within this: it may wait for one that died, for
// `peer_timeout`.
constexpr Duration kLeaves = std::chrono::seconds(45);

constexpr uint64_t number_of(ErrorKind kind) { return 1 + static_cast<uint64_t>(kind); }

bool is_loss(uint64_t outcome) {
  return outcome == number_of(ErrorKind::peer_lost) || outcome == number_of(ErrorKind::fenced);
}

// Judged by what has happened to the workers and to the network between them, and not by what the
// one that gives another up says of it.
class Losses final : public QuietOracle {
 public:
  explicit Losses(bool dynamic) : dynamic_(dynamic) {}

  std::string_view name() const override { return "losses"; }
  EventKinds watched() const override {
    return {EventKind::peer_lost, EventKind::peer_fenced, EventKind::call_completed,
            EventKind::node_stopped};
  }

  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    if (event.kind == EventKind::peer_lost)
      link_lost_by_[{seen.incarnation.value, event.peer}] = event.text;
    if (event.kind == EventKind::peer_fenced) given_up(seen);
    if (event.kind == EventKind::node_stopped) {
      somebody_is_gone_ = true;
      stopped_.try_emplace(seen.life, seen.when);
    }
    const bool fails = event.kind == EventKind::call_completed && is_loss(event.number);
    if (fails && losses_.empty() && !somebody_is_gone_ && !dynamic_)
      findings.fail(name(), "call " + to_string(event.id),
                    "it failed because a worker was lost, and nobody has been given up so far");
  }

  void on_crash(const LifeView&) override { somebody_is_gone_ = true; }

  void at_end(const ClusterView& cluster, Findings& findings) override {
    if (cluster.may_be_silent) return;
    for (const Loss& loss : losses_) {
      const LifeView* const whom = lost_one(cluster, loss);
      if (loss.answers || whom == nullptr || was_over(*whom, loss.when)) continue;
      if (has_returned(cluster, *whom)) continue;
      if (was_refused(loss)) continue;
      if (dynamic_ && (loss.told || was_leaving(*whom, loss.when))) continue;
      findings.fail(name(), "worker '" + std::string(whom->name) + "'",
                    "worker " + std::to_string(loss.who.worker.value) + " has given it up at " +
                        in_seconds(loss.when.time_since_epoch()) +
                        ", and nothing had happened to it: " + loss.why);
    }
  }

 private:
  struct Loss {
    net_fake::LifeId who;
    WorkerId whom;
    uint64_t lost;  // the incarnation; 0: none has been met
    Instant when;
    std::string why;
    bool told;     // by the other one, who closed the link
    bool answers;  // the other one, who had given it up before
  };

  void given_up(const Observation& seen) {
    const Event& event = seen.event;
    const uint64_t who = seen.incarnation.value;
    given_up_.insert({who, event.number});
    losses_.push_back({.who = seen.life,
                       .whom = event.peer,
                       .lost = event.number,
                       .when = seen.when,
                       .why = std::string(event.text),
                       .told = link_lost_by_[{who, event.peer}] == event.text,
                       .answers = given_up_.contains({event.number, who})});
  }

  // The life that was given up: the first one where none had been met.
  static const LifeView* lost_one(const ClusterView& cluster, const Loss& loss) {
    const auto found =
        std::find_if(cluster.lives.begin(), cluster.lives.end(), [&loss](const LifeView& life) {
          return life.id.worker == loss.whom &&
                 (loss.lost == 0 || life.incarnation.value == loss.lost);
        });
    return found == cluster.lives.end() ? nullptr : &*found;
  }

  static bool was_over(const LifeView& life, Instant when) {
    return (life.crashed || life.result != nullptr) && life.ended <= when;
  }

  // Of a dynamic group: the others know of it before its main has ended, or a crash has ended it.
  static bool was_leaving(const LifeView& life, Instant when) {
    return (ended_well(life) || life.crashed) && life.ended - when < kLeaves;
  }

  static bool has_returned(const ClusterView& cluster, const LifeView& life) {
    return std::any_of(cluster.lives.begin(), cluster.lives.end(), [&life](const LifeView& other) {
      return other.id.worker == life.id.worker && life.id < other.id;
    });
  }

  // A worker that comes back when the group has shut down is told so, and stops.
  bool was_refused(const Loss& loss) const {
    const auto stopped = stopped_.find(loss.who);
    return loss.who.life > 0 && stopped != stopped_.end() && stopped->second >= loss.when &&
           stopped->second - loss.when < kRefused;
  }

  const bool dynamic_;  // who leaves is asked nothing more, and refuses those who come
  std::vector<Loss> losses_;
  std::set<std::pair<uint64_t, uint64_t>> given_up_;                   // incarnations: by whom, who
  std::map<std::pair<uint64_t, WorkerId>, std::string> link_lost_by_;  // incarnation, peer: why
  std::map<net_fake::LifeId, Instant> stopped_;
  bool somebody_is_gone_ = false;
};

}  // namespace

std::unique_ptr<Oracle> make_losses(bool dynamic) { return std::make_unique<Losses>(dynamic); }

}  // namespace rehearsal::sim
