#include "sim/oracles/retries.h"

#include <algorithm>
#include <cstdint>

#include "sim/oracles/words.h"

namespace rehearsal::sim {
namespace {

constexpr uint64_t kAtOnceMax = 10'000;
constexpr uint64_t kAnsweredMax = 500'000;

using Streak = FailingCalls::Streak;

bool fails_too_often(const Streak& streak) {
  return streak.at_once - streak.forgiven_at_once >= kAtOnceMax;
}
bool is_refused_too_often(const Streak& streak) {
  return streak.count - streak.forgiven >= kAnsweredMax;
}

const LifeView* last_life_of(const ClusterView& cluster, WorkerId worker) {
  const auto last =
      std::find_if(cluster.lives.rbegin(), cluster.lives.rend(),
                   [worker](const LifeView& life) { return life.id.worker == worker; });
  return last == cluster.lives.rend() ? nullptr : &*last;
}

bool is_over(const LifeView& life) { return life.crashed || life.result != nullptr; }

// Whether this life may still try.
bool tries_on(const ClusterView& cluster, const net_fake::LifeId& life) {
  const LifeView* const last = last_life_of(cluster, life.worker);
  return last != nullptr && last->id == life && !is_over(*last);
}

}  // namespace

Retries::Caller& Retries::caller_of(const net_fake::LifeId& life) {
  if (callers_.size() <= life.worker.value) callers_.resize(life.worker.value + 1);
  std::optional<Caller>& caller = callers_[life.worker.value];
  if (!caller || caller->life != life) caller.emplace(Caller{.life = life});
  return *caller;
}

const Streak* Retries::on_event(const Observation& seen) {
  Caller& caller = caller_of(seen.life);
  if (seen.event.kind == EventKind::peer_fenced) {
    caller.fenced[seen.event.peer] = seen.event.text;
    return nullptr;
  }
  return caller.calls.on_event(seen.event, seen.when);
}

void Retries::forgive() {
  for (std::optional<Caller>& caller : callers_)
    if (caller) caller->calls.forgive();
}

std::optional<Retries::InVain> Retries::in_vain(const ClusterView& cluster,
                                                Instant begun_by) const {
  for (const auto is_too_often : {fails_too_often, is_refused_too_often})
    for (const std::optional<Caller>& caller : callers_) {
      if (!caller || !tries_on(cluster, caller->life)) continue;
      for (const Streak& streak : caller->calls.streaks())
        if (streak.since <= begun_by && is_too_often(streak))
          return told(*caller, streak, &cluster);
    }
  return std::nullopt;
}

std::optional<Retries::InVain> Retries::busiest(const ClusterView& cluster, Instant since) const {
  const Caller* who = nullptr;
  const Streak* most = nullptr;
  for (const std::optional<Caller>& caller : callers_) {
    if (!caller || !tries_on(cluster, caller->life)) continue;
    for (const Streak& streak : caller->calls.streaks()) {
      const bool again = streak.at_once > 1 && streak.last >= since;
      if (!again || (most != nullptr && most->at_once >= streak.at_once)) continue;
      who = &*caller;
      most = &streak;
    }
  }
  if (most == nullptr) return std::nullopt;
  return told(*who, *most, &cluster);
}

Retries::InVain Retries::told(const Observation& seen, const Streak& streak) const {
  return told(*callers_.at(seen.life.worker.value), streak, nullptr);
}

std::string Retries::name_of(WorkerId worker) const {
  return worker.value < names_.size() ? names_[worker.value] : std::to_string(worker.value);
}

// As far as it is known: whether the peer is gone, else why the caller has given it up.
std::string Retries::cause_of(const Caller& caller, WorkerId peer,
                              const ClusterView* cluster) const {
  const std::string name = "'" + name_of(peer) + "'";
  if (cluster != nullptr) {
    const LifeView* const life = last_life_of(*cluster, peer);
    if (life == nullptr) return ", " + name + " has never been there";
    if (life->crashed)
      return ", " + name + " crashed at " + in_seconds(life->ended.time_since_epoch());
    if (life->result != nullptr)
      return ", " + name + (life->result->ok() ? " ended at " : " failed at ") +
             in_seconds(life->ended.time_since_epoch());
  }
  const auto why = caller.fenced.find(peer);
  return why == caller.fenced.end() ? "" : ", " + why->second;
}

Retries::InVain Retries::told(const Caller& caller, const Streak& streak,
                              const ClusterView* cluster) const {
  const std::string name = name_of(caller.life.worker);
  const bool all_at_once = streak.at_once == streak.count;
  return {.caller = name,
          .text = name + " has called `" + streak.function + "` at '" + name_of(streak.peer) +
                  "' " + grouped(streak.count) + " times since " +
                  in_seconds(streak.since.time_since_epoch()) +
                  (all_at_once ? "; each failed at once: " : "; each failed: ") +
                  std::string(rehearsal::name_of(streak.kind)) +
                  cause_of(caller, streak.peer, cluster),
          .answered = !streak.last_at_once};
}

}  // namespace rehearsal::sim
