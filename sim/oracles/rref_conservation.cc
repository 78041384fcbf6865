#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "core/values/payload.h"
#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

using net_fake::LifeId;

// The reports of a fork's owner and holder on it.
struct Fork {
  uint64_t rref = 0;  // CausalIdHash of the RRef's id
  LifeId holder;
  bool held = false;        // user_created
  bool released = false;    // user_deleted
  bool registered = false;  // at the owner
  bool deleted = false;     // there
  bool refused = false;
};

struct Reference {
  CausalId id;
  LifeId owner;
  bool dropped = false;
  std::vector<CausalId> forks;
};

class RRefConservation final : public QuietOracle {
 public:
  std::string_view name() const override { return "rref conservation"; }
  EventKinds watched() const override {
    return {EventKind::owner_created, EventKind::owner_dropped, EventKind::fork_registered,
            EventKind::fork_deleted,  EventKind::fork_refused,  EventKind::user_created,
            EventKind::user_deleted,  EventKind::call_executed, EventKind::call_completed,
            EventKind::peer_fenced};
  }

  void on_event(const Observation& seen, Findings& findings) override {
    switch (seen.event.kind) {
      case EventKind::owner_created:
        return owner_created(seen, findings);
      case EventKind::owner_dropped:
        return owner_dropped(seen, findings);
      case EventKind::fork_registered:
        return fork_registered(seen, findings);
      case EventKind::fork_deleted:
        return fork_deleted(seen, findings);
      case EventKind::fork_refused:
        return fork_refused(seen, findings);
      case EventKind::user_created:
        return user_created(seen, findings);
      case EventKind::user_deleted:
        return user_deleted(seen, findings);
      case EventKind::call_executed:
        return user_code_sees(seen, kArgumentForks, findings);
      case EventKind::call_completed:
        if (seen.event.number == 0) user_code_sees(seen, kResultForks, findings);
        return;
      case EventKind::peer_fenced:
        fenced_.insert({seen.incarnation.value, seen.event.number});
        return;
      default:
        return;
    }
  }

  void on_crash(const LifeView& life) override { crashed_.insert(life.id); }

  void at_end(const ClusterView& cluster, Findings& findings) override {
    std::set<LifeId> well;
    for (const LifeView& life : cluster.lives) {
      incarnations_[life.id] = life.incarnation.value;
      if (ended_well(life)) well.insert(life.id);
    }
    for (const uint64_t name_of_rref : references_made_) {
      const Reference& reference = references_.at(name_of_rref);
      if (!reference.dropped && well.contains(reference.owner) && !cluster.dynamic)
        findings.fail(name(), describe(reference),
                      "its value was never dropped; forks left: " + forks_left(reference));
    }
    for (const CausalId& id : forks_made_) {
      const Fork& fork = forks_.at(id);
      if (fork.held && !fork.released && well.contains(fork.holder))
        findings.fail(name(), describe(id, fork), "its holder has ended and still has it");
    }
  }

 private:
  Fork& fork_of(const Observation& seen) {
    const auto [place, fresh] = forks_.try_emplace(seen.event.id);
    if (fresh) {
      place->second.rref = seen.event.number;
      forks_made_.push_back(seen.event.id);
      references_[seen.event.number].forks.push_back(seen.event.id);
    }
    return place->second;
  }

  void owner_created(const Observation& seen, Findings& findings) {
    const uint64_t key = CausalIdHash{}(seen.event.id);
    Reference& reference = references_[key];
    if (reference.id != CausalId{})
      findings.fail(name(), describe(reference), "its value was created twice");
    reference.id = seen.event.id;
    reference.owner = seen.life;
    incarnations_[seen.life] = seen.incarnation.value;
    references_made_.push_back(key);
  }

  void owner_dropped(const Observation& seen, Findings& findings) {
    Reference& reference = references_[CausalIdHash{}(seen.event.id)];
    if (reference.dropped || reference.id == CausalId{})
      findings.fail(name(), describe(reference), "its value was dropped twice");
    reference.dropped = true;
    for (const CausalId& id : reference.forks) {
      const Fork& fork = forks_.at(id);
      if (alive(fork) && fork.registered && !fork.deleted)
        findings.fail(name(), describe(reference),
                      "its value was dropped while " + describe(id, fork) + " lives");
    }
  }

  void fork_registered(const Observation& seen, Findings& findings) {
    Fork& fork = fork_of(seen);
    const Reference& reference = references_.at(fork.rref);
    if (fork.deleted)
      findings.fail(name(), describe(seen.event.id, fork), "a deleted fork is back");
    if (reference.dropped)
      findings.fail(name(), describe(seen.event.id, fork),
                    "it was registered although the value is gone");
    if (fork.released && together(fork.holder, seen.life))
      findings.fail(name(), describe(seen.event.id, fork),
                    "it was registered after its holder had deleted it");
    fork.registered = true;
  }

  // A fork on its way keeps the value, unless one of those that it concerns has lost another.
  void fork_refused(const Observation& seen, Findings& findings) {
    Fork& fork = fork_of(seen);
    fork.refused = true;
    if (crashed_.empty() && fenced_.empty())
      findings.fail(name(), describe(seen.event.id, fork),
                    "its owner has refused it, although nobody has lost anybody");
  }

  void fork_deleted(const Observation& seen, Findings& findings) {
    Fork& fork = fork_of(seen);
    if (fork.deleted || !fork.registered)
      findings.fail(name(), describe(seen.event.id, fork), "it was deleted twice");
    if (alive(fork) && together(fork.holder, seen.life))
      findings.fail(name(), describe(seen.event.id, fork),
                    "its owner has deleted it, and its holder still has it");
    fork.deleted = true;
  }

  void user_created(const Observation& seen, Findings& findings) {
    Fork& fork = fork_of(seen);
    if (fork.held) findings.fail(name(), describe(seen.event.id, fork), "it was adopted twice");
    fork.held = true;
    fork.holder = seen.life;
    forks_of_payloads_[seen.event.id.path.low].push_back(seen.event.id);
    incarnations_[seen.life] = seen.incarnation.value;
  }

  void user_deleted(const Observation& seen, Findings& findings) {
    Fork& fork = fork_of(seen);
    if (fork.released || !fork.held)
      findings.fail(name(), describe(seen.event.id, fork), "it was released twice");
    fork.released = true;
  }

  // User code is given the references of a call's arguments, or of its result: the owner must have
  // registered each of them by now.
  void user_code_sees(const Observation& seen, uint64_t payload, Findings& findings) {
    const Hash128 path = mix(seen.event.id.place(), payload);
    const auto found = forks_of_payloads_.find(path.low);
    if (found == forks_of_payloads_.end()) return;
    for (const CausalId& id : found->second) {
      const Fork& fork = forks_.at(id);
      if (fork.holder != seen.life || fork.released || fork.registered) continue;
      findings.fail(name(), describe(id, fork),
                    "user code has it before its owner has confirmed it, in call " +
                        to_string(seen.event.id));
    }
  }

  [[nodiscard]] bool alive(const Fork& fork) const {
    return fork.held && !fork.released && !fork.refused && !crashed_.contains(fork.holder);
  }

  // Whether neither of the two has fenced the other.
  [[nodiscard]] bool together(LifeId one, LifeId other) const {
    const auto first = incarnations_.find(one);
    const auto second = incarnations_.find(other);
    if (first == incarnations_.end() || second == incarnations_.end()) return false;
    return !crashed_.contains(one) && !crashed_.contains(other) &&
           !fenced_.contains({first->second, second->second}) &&
           !fenced_.contains({second->second, first->second});
  }

  static std::string worker(LifeId life) {
    return life == LifeId{} ? "nobody" : "worker " + std::to_string(life.worker.value);
  }
  static std::string describe(const Reference& reference) {
    if (reference.id == CausalId{}) return "an rref that its owner has not made";
    return "rref " + to_string(reference.id) + " at " + worker(reference.owner);
  }
  [[nodiscard]] std::string describe(const CausalId& id, const Fork& fork) const {
    return "fork " + to_string(id) + " at " + worker(fork.holder) + " of " +
           describe(references_.at(fork.rref));
  }
  [[nodiscard]] std::string forks_left(const Reference& reference) const {
    std::string text;
    for (const CausalId& id : reference.forks) {
      const Fork& fork = forks_.at(id);
      if (fork.registered && !fork.deleted)
        text += (text.empty() ? "" : ", ") + to_string(id) + " of " + worker(fork.holder) +
                (fork.released ? " (released)" : "");
    }
    return text.empty() ? "none" : text;
  }

  std::unordered_map<uint64_t, Reference> references_;  // by CausalIdHash of the id
  std::unordered_map<CausalId, Fork, CausalIdHash> forks_;
  std::vector<uint64_t> references_made_;
  std::vector<CausalId> forks_made_;
  std::unordered_map<uint64_t, std::vector<CausalId>> forks_of_payloads_;  // by `low` of their path
  std::map<LifeId, uint64_t> incarnations_;
  std::set<std::pair<uint64_t, uint64_t>> fenced_;  // incarnations: who, whom
  std::set<LifeId> crashed_;
};

}  // namespace

std::unique_ptr<Oracle> make_rref_conservation() { return std::make_unique<RRefConservation>(); }

}  // namespace rehearsal::sim
