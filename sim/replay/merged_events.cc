#include "sim/replay/merged_events.h"

namespace rehearsal::sim {

KeptEvent::KeptEvent(const Event& seen, bool begins)
    : event_(seen), begins_(begins), text_(seen.text), value_(seen.value) {
  event_.text = event_.value = {};
}

Event KeptEvent::event() const {
  Event event = event_;
  event.text = text_;
  event.value = value_;
  return event;
}

MergedEvents::MergedEvents(const std::vector<EventList>& lives)
    : lives_(lives), at_(lives.size()), sends_(lives.size()) {
  for (size_t life = 0; life < lives.size(); ++life)
    known_.emplace(lives[life].incarnation.value, life);
  for (size_t life = 0; life < lives.size(); ++life) {
    name_sends(life);
    for (const auto& [event, name] : sends_[life]) to_be_sent_.insert(name);
  }
}

// Numbers begin anew with each life of the receiver. Frames that are sent before the two have met
// are for the life that is met next.
void MergedEvents::name_sends(size_t life) {
  const EventList& list = lives_[life];
  std::map<WorkerId, uint64_t> met;
  std::map<WorkerId, std::vector<size_t>> early;
  const auto name = [&](size_t event, uint64_t receiver) {
    sends_[life].emplace(
        event, FrameName{list.incarnation.value, receiver, list.events[event].event().number});
  };
  for (size_t i = 0; i < list.events.size(); ++i) {
    const Event event = list.events[i].event();
    if (event.kind == EventKind::peer_fenced) {
      // It may have been met in its next life before it was fenced in the last.
      if (met.contains(event.peer) && met[event.peer] == event.number) met.erase(event.peer);
    } else if (event.kind == EventKind::peer_up) {
      met[event.peer] = event.number;
      if (!known_.contains(event.number)) unknown_.insert({event.peer, event.number});
      for (const size_t sent : early[event.peer]) name(sent, event.number);
      early.erase(event.peer);
    } else if (event.kind == EventKind::frame_sent) {
      const auto receiver = met.find(event.peer);
      receiver == met.end() ? early[event.peer].push_back(i) : name(i, receiver->second);
    }
  }
}

std::optional<MergedEvents::Next> MergedEvents::next() {
  std::optional<size_t> first = going_on_, waiting;
  Instant earliest = Instant::max();
  for (size_t life = 0; !going_on_ && life < lives_.size(); ++life) {
    if (at_[life] == lives_[life].events.size()) continue;
    if (!waiting) waiting = life;
    const Instant when = lives_[life].events[at_[life]].event().when;
    if ((first && when >= earliest) || !may_come(life)) continue;
    first = life;
    earliest = when;
  }
  if (!first) first = waiting;  // Frames that wait for each other: the oracles shall see it.
  if (!first) return std::nullopt;
  const EventList& list = lives_[*first];
  const size_t event = at_[*first]++;
  come(*first, event);
  const bool goes_on = at_[*first] < list.events.size() && !list.events[at_[*first]].begins();
  going_on_ = goes_on ? first : std::nullopt;
  return Next{*first, event, at_[*first] == list.events.size()};
}

bool MergedEvents::may_come(size_t life) const {
  const std::deque<KeptEvent>& events = lives_[life].events;
  for (size_t at = at_[life]; at == at_[life] || (at < events.size() && !events[at].begins()); ++at)
    if (!may_come(life, events[at].event())) return false;
  return true;
}

bool MergedEvents::may_come(size_t life, const Event& event) const {
  if (event.kind == EventKind::peer_fenced) {
    const auto fenced = known_.find(event.number);
    if (fenced == known_.end() || !lives_[fenced->second].cut_off) return true;
    return at_[fenced->second] == lives_[fenced->second].events.size();
  }
  if (event.kind != EventKind::frame || event.peer == event.worker) return true;
  const auto met = met_.find({life, event.peer});
  if (met == met_.end()) return true;
  return !to_be_sent_.contains({met->second, lives_[life].incarnation.value, event.number});
}

void MergedEvents::come(size_t life, size_t number) {
  const Event event = lives_[life].events[number].event();
  if (event.kind == EventKind::peer_up) met_[{life, event.peer}] = event.number;
  if (const auto sent = sends_[life].find(number); sent != sends_[life].end())
    to_be_sent_.erase(sent->second);
}

}  // namespace rehearsal::sim
