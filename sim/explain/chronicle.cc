#include "sim/explain/chronicle.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

namespace rehearsal::sim {
namespace {

// One life of a worker.
using Place = std::pair<uint32_t, uint32_t>;
// Sender, receiver and sequence number: a frame.
using FrameName = std::tuple<Place, Place, uint64_t>;

class Joining {
 public:
  explicit Joining(const History& history) { chronicle_.workers = history.workers(); }

  void take(const Entry& entry) {
    switch (entry.kind) {
      case EntryKind::event:
        return take_event(entry);
      case EntryKind::sent:
        return take_sent(entry);
      case EntryKind::arrived:
        arriving_[entry.worker] = &entry;
        return;
      case EntryKind::tables:
        if (const auto last = last_of({entry.worker, entry.life}))
          chronicle_.moments[*last].tables = entry.text.empty() ? "nothing" : entry.text;
        return;
      case EntryKind::broken:
        return take_broken(entry);
      case EntryKind::restart:
        if (const auto before = last_of({entry.worker, entry.life - 1})) add(entry, {*before});
        return;
      case EntryKind::failed:
        if (!chronicle_.moments.empty()) chronicle_.failed_at = chronicle_.moments.size() - 1;
        return;
      case EntryKind::partition:
        add(entry, decision_just_made(entry, "partition:"));
        return;
      default:
        add(entry, {});
    }
  }

  Chronicle result() {
    for (const auto& [name, message] : on_their_way_) settle(message);
    return std::move(chronicle_);
  }

 private:
  std::optional<size_t> last_of(Place place) const {
    const auto found = last_.find(place);
    return found == last_.end() ? std::nullopt : std::optional(found->second);
  }

  size_t add(const Entry& entry, const std::vector<size_t>& more_causes) {
    const size_t number = chronicle_.moments.size();
    Moment moment{.entry = entry, .causes = {}, .message = {}, .tables = {}};
    const bool at_worker = entry.kind != EntryKind::broken && entry.worker != kNoWorker;
    const Place place{entry.worker, entry.life};
    if (at_worker) {
      if (const auto before = last_of(place)) moment.causes.push_back(*before);
      last_[place] = number;
    }
    for (const size_t cause : more_causes)
      if (std::find(moment.causes.begin(), moment.causes.end(), cause) == moment.causes.end())
        moment.causes.push_back(cause);
    chronicle_.moments.push_back(std::move(moment));
    return number;
  }

  void take_event(const Entry& entry) {
    const bool takes = entry.event == EventKind::frame || entry.event == EventKind::frame_dropped;
    if (takes && entry.peer == entry.worker) return take_own(entry);
    if (takes) return take_frame(entry);
    if (entry.event == EventKind::peer_lost) {
      const auto broken = breaks_.find(std::minmax(entry.worker, entry.peer));
      add(entry,
          broken == breaks_.end() ? std::vector<size_t>{} : std::vector<size_t>{broken->second});
      return;
    }
    const size_t number = add(entry, {});
    if (entry.event != EventKind::frame_sent) return;
    if (entry.peer == entry.worker) {
      start_message(number);
      to_self_[{entry.worker, entry.life}].push_back(number);
    } else {
      unsent_[{entry.worker, entry.life, entry.peer, entry.number}] = number;
    }
  }

  size_t start_message(size_t moment) {
    chronicle_.messages.push_back({.sent = moment, .arrived = {}, .lost_at = {}});
    chronicle_.moments[moment].message = chronicle_.messages.size() - 1;
    return chronicle_.messages.size() - 1;
  }

  // The first time a frame travels belongs to the moment in which its node sent it.
  void take_sent(const Entry& entry) {
    const Place from{entry.worker, entry.life};
    const Place to{entry.peer, entry.peer_life};
    const auto first = unsent_.find({entry.worker, entry.life, entry.peer, entry.number});
    const bool known = first != unsent_.end();
    size_t moment = 0;
    if (known && !chronicle_.moments[first->second].message) {
      moment = first->second;
      Entry& sending = chronicle_.moments[moment].entry;
      sending.peer_life = entry.peer_life;
      sending.bytes = entry.bytes;
      sending.detail = entry.detail;
    } else {
      moment = add(entry, known ? std::vector<size_t>{first->second} : std::vector<size_t>{});
      if (known) chronicle_.moments[moment].entry.id = chronicle_.moments[first->second].entry.id;
    }
    const FrameName name{from, to, entry.number};
    if (const auto earlier = on_their_way_.find(name); earlier != on_their_way_.end())
      settle(earlier->second);
    on_their_way_[name] = start_message(moment);
  }

  // A message that will not arrive any more.
  void settle(size_t message) {
    const auto broken = endangered_.find(message);
    if (broken != endangered_.end()) chronicle_.messages[message].lost_at = broken->second;
  }

  void take_own(const Entry& entry) {
    std::deque<size_t>& waiting = to_self_[{entry.worker, entry.life}];
    if (waiting.empty()) {
      add(entry, {});
      return;
    }
    const size_t sent = waiting.front();
    waiting.pop_front();
    arrive(add(entry, {sent}), *chronicle_.moments[sent].message);
  }

  void take_frame(const Entry& entry) {
    const Entry* arrival = std::exchange(arriving_[entry.worker], nullptr);
    if (arrival == nullptr || arrival->peer != entry.peer) {
      add(entry, {});
      return;
    }
    const auto travelling = on_their_way_.find(
        {{entry.peer, arrival->peer_life}, {entry.worker, entry.life}, arrival->number});
    if (travelling == on_their_way_.end()) {
      add(entry, {});
      return;
    }
    const size_t message = travelling->second;
    on_their_way_.erase(travelling);
    const Entry sending = chronicle_.moments[chronicle_.messages[message].sent].entry;
    const size_t number = add(entry, {chronicle_.messages[message].sent});
    Entry& taken = chronicle_.moments[number].entry;
    taken.number = arrival->number;
    taken.peer_life = arrival->peer_life;
    taken.message_type = sending.message_type;
    taken.bytes = sending.bytes;
    taken.detail = sending.detail;
    if (taken.id.empty()) taken.id = sending.id;
    arrive(number, message);
  }

  void arrive(size_t moment, size_t message) {
    chronicle_.moments[moment].message = message;
    chronicle_.messages[message].arrived = moment;
  }

  void take_broken(const Entry& entry) {
    std::vector<size_t> causes = decision_just_made(entry, "cut:");
    const Place one{entry.worker, entry.life};
    const Place other{entry.peer, entry.peer_life};
    for (const Place& place : {one, other})
      if (const auto last = last_of(place)) causes.push_back(*last);
    const size_t number = add(entry, causes);
    breaks_[std::minmax(entry.worker, entry.peer)] = number;
    for (const auto& [name, message] : on_their_way_) {
      const auto& [from, to, sequence] = name;
      if ((from == one && to == other) || (from == other && to == one))
        endangered_[message] = number;
    }
  }

  // The given decision that led to this, if one was asked for at the same instant.
  std::vector<size_t> decision_just_made(const Entry& entry, std::string_view kind) const {
    for (size_t i = chronicle_.moments.size(); i-- > 0;) {
      const Entry& earlier = chronicle_.moments[i].entry;
      if (earlier.when != entry.when) break;
      if (earlier.kind == EntryKind::decision && earlier.text.starts_with(kind)) return {i};
    }
    return {};
  }

  Chronicle chronicle_;
  std::map<Place, size_t> last_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>, size_t> unsent_;
  std::map<Place, std::deque<size_t>> to_self_;
  std::map<FrameName, size_t> on_their_way_;  // the latest transmission: a resend ends earlier ones
  std::map<uint32_t, const Entry*> arriving_;
  std::map<std::pair<uint32_t, uint32_t>, size_t> breaks_;
  std::map<size_t, size_t> endangered_;  // messages, and the break that may have taken them
};

}  // namespace

Chronicle chronicle_of(const History& history) {
  Joining joining(history);
  for (const Entry& entry : history.entries()) joining.take(entry);
  return joining.result();
}

std::vector<bool> causal_past(const Chronicle& chronicle, size_t last) {
  std::vector<bool> past(last + 1, false);
  past[last] = true;
  for (size_t i = last + 1; i-- > 0;)
    if (past[i])
      for (const size_t cause : chronicle.moments[i].causes) past[cause] = true;
  return past;
}

}  // namespace rehearsal::sim
