#include "sim/hunt/features.h"

#include "core/base/hash.h"

namespace rehearsal::sim {
namespace {

uint64_t number_of(EventKind kind) { return static_cast<uint64_t>(kind); }

}  // namespace

void Features::add(uint64_t hash) { seen_.set(hash % kFeatures); }

void Features::add_delivery(const Event& event) {
  const uint64_t delivery = mix(event.peer.value, event.message_type);
  uint64_t& last = deliveries_[event.worker];
  add(mix(mix(event.worker.value, last), delivery));
  last = delivery;
}

void Features::add_step_of(uint64_t object, const Event& event) {
  const auto [place, fresh] = objects_.try_emplace(object, Last{event.kind, event.worker});
  if (fresh) return;
  Last& last = place->second;
  const uint64_t elsewhere = last.worker == event.worker ? 0 : 1;
  add(mix(number_of(last.kind), number_of(event.kind) << 1 | elsewhere));
  last = {event.kind, event.worker};
}

void Features::on_event(const Event& event) {
  switch (event.kind) {
    case EventKind::frame:
      return add_delivery(event);
    case EventKind::mark:
    case EventKind::frame_dropped:
    case EventKind::peer_fenced:
      return add(mix(number_of(event.kind), hash_text(event.text)));
    case EventKind::call_completed:
      return add(mix(number_of(event.kind), event.number));
    case EventKind::owner_created:
    case EventKind::owner_dropped:
    case EventKind::context_opened:
    case EventKind::context_released:
    case EventKind::pass_started:
    case EventKind::pass_ended:
    case EventKind::optimizer_stepped:
      return add_step_of(CausalIdHash{}(event.id), event);
    case EventKind::fork_registered:
    case EventKind::fork_deleted:
    case EventKind::fork_refused:
    case EventKind::user_created:
    case EventKind::user_deleted:
      return add_step_of(event.number, event);
    default:
      return;
  }
}

std::vector<uint32_t> Features::seen() const {
  std::vector<uint32_t> features;
  for (uint32_t i = 0; i < kFeatures; ++i)
    if (seen_.test(i)) features.push_back(i);
  return features;
}

}  // namespace rehearsal::sim
