#include "sim/explain/chronicle.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "core/wire/message.h"

namespace rehearsal::sim {
namespace {

// One life of a worker.
using Place = std::pair<uint32_t, uint32_t>;
// Sender, receiver and sequence number: a frame.
using FrameName = std::tuple<Place, Place, uint64_t>;

// Whether the program does it, rather than the library for the program.
bool is_of_program(const Entry& entry) {
  if (entry.kind == EntryKind::thrown) return true;
  if (entry.kind != EntryKind::event) return false;
  switch (entry.event) {
    case EventKind::api_call:
    case EventKind::execution_started:
    case EventKind::execution_ended:
    case EventKind::call_executed:
    case EventKind::call_served:
    case EventKind::call_completed:
    case EventKind::pass_started:
    case EventKind::pass_ended:
    case EventKind::optimizer_stepped:
    case EventKind::checkpoint_saved:
    case EventKind::checkpoint_loaded:
    case EventKind::note:
      return true;
    default:
      return false;
  }
}

// A shutdown of fewer moments hides nothing.
constexpr size_t kShutdownMin = 3;

// Follows the main of one life, for the place where it failed.
struct MainStory {
  std::string id;  // of its execution; empty: it has not begun
  std::optional<size_t> thrown;
  std::optional<size_t> ended;
};

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
        return take_failure(entry);
      case EntryKind::device:
        return take_device(entry);
      case EntryKind::thrown:
        return note_main(entry, add(entry, {}));
      case EntryKind::partition:
        add(entry, decision_just_made(entry, "partition:"));
        return;
      default:
        add(entry, {});
    }
  }

  Chronicle result() {
    for (const auto& [name, message] : on_their_way_) settle(message);
    find_shutdown();
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
    note_main(entry, number);
    if (entry.event == EventKind::api_call) calls_[{entry.worker, entry.id}] = number;
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

  // A stream has causes of its own: what it was given, and what it waited for. Its worker goes on
  // meanwhile.
  void take_device(const Entry& entry) {
    using Step = StreamNote::Step;
    const Place place{entry.worker, entry.life};
    const StreamNote& note = *entry.stream;
    const auto operation = operations_.find({place, entry.number});
    Operation before = operation == operations_.end() ? Operation{} : operation->second;
    if (note.step == Step::given) {
      operations_[{place, entry.number}].given = add(entry, {});
      return;
    }
    if (note.step == Step::awaited) {
      add(entry, before.done ? std::vector<size_t>{*before.done} : std::vector<size_t>{});
      return;
    }
    std::optional<size_t>& last = streams_[{place, {note.device, note.stream}}];
    std::vector<size_t> causes;
    if (last) causes.push_back(*last);
    const std::optional<size_t> other = note.step == Step::done ? before.given : before.done;
    if (other) causes.push_back(*other);
    last = add_beside(entry, std::move(causes));
    if (note.step == Step::done) operations_[{place, entry.number}].done = last;
  }

  // Of nobody's own course.
  size_t add_beside(const Entry& entry, std::vector<size_t> causes) {
    chronicle_.moments.push_back(
        {.entry = entry, .causes = std::move(causes), .message = {}, .tables = {}});
    return chronicle_.moments.size() - 1;
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
      sending.autograd = entry.autograd;
      tell_call(sending);
    } else {
      moment = add(entry, known ? std::vector<size_t>{first->second} : std::vector<size_t>{});
      if (known) chronicle_.moments[moment].entry.id = chronicle_.moments[first->second].entry.id;
    }
    const FrameName name{from, to, entry.number};
    if (const auto earlier = on_their_way_.find(name); earlier != on_their_way_.end())
      settle(earlier->second);
    on_their_way_[name] = start_message(moment);
  }

  // The message of a call knows where the call was made, and the call what the message says.
  void tell_call(Entry& sending) {
    const auto made = calls_.find({sending.worker, sending.id});
    if (made == calls_.end() || message_name(sending.message_type) != "Call") return;
    Entry& call = chronicle_.moments[made->second].entry;
    call.detail = sending.detail;
    sending.stack = call.stack;
  }

  void note_main(const Entry& entry, size_t moment) {
    MainStory& main = mains_[{entry.worker, entry.life}];
    if (entry.event == EventKind::execution_started && entry.kind == EntryKind::event) {
      if (main.id.empty() && entry.text == chronicle_.workers.at(entry.worker)) main.id = entry.id;
      return;
    }
    if (main.id.empty() || main.ended) return;
    const bool is_mains = entry.id == main.id || entry.parent == main.id;
    if (!is_mains) return;
    if (entry.kind == EntryKind::thrown) {
      main.thrown = moment;
    } else if (entry.event == EventKind::execution_ended) {
      main.ended = moment;
    } else {
      main.thrown.reset();  // It has been caught: the main goes on.
    }
  }

  void take_failure(const Entry& entry) {
    if (chronicle_.moments.empty()) return;
    found_afterwards_ = entry.worker == kNoWorker && entry.number == 1;
    if (found_afterwards_) return;
    chronicle_.failed_at = chronicle_.moments.size() - 1;
    if (entry.worker == kNoWorker) return;
    const MainStory& main = mains_[{entry.worker, entry.life}];
    if (const auto place = main.thrown ? main.thrown : main.ended) chronicle_.failed_at = *place;
  }

  void find_shutdown() {
    if (found_afterwards_) return;
    const auto& moments = chronicle_.moments;
    size_t from = moments.size();
    while (from > 0 && !is_of_program(moments[from - 1].entry)) --from;
    if (chronicle_.failed_at) from = std::max(from, *chronicle_.failed_at + 1);
    if (from > 0 && moments.size() - from >= kShutdownMin) chronicle_.shutdown_from = from;
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
    taken.attempt = sending.attempt;
    taken.message_type = sending.message_type;
    taken.bytes = sending.bytes;
    taken.detail = sending.detail;
    taken.autograd = sending.autograd;
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

  // Of a device: when it was given to its stream, and done.
  struct Operation {
    std::optional<size_t> given;
    std::optional<size_t> done;
  };

  Chronicle chronicle_;
  std::map<Place, size_t> last_;
  std::map<std::pair<Place, uint64_t>, Operation> operations_;  // by number
  std::map<std::pair<Place, std::pair<uint32_t, uint64_t>>, std::optional<size_t>>
      streams_;  // last
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>, size_t> unsent_;
  std::map<Place, std::deque<size_t>> to_self_;
  std::map<FrameName, size_t> on_their_way_;  // the latest transmission: a resend ends earlier ones
  std::map<uint32_t, const Entry*> arriving_;
  std::map<std::pair<uint32_t, uint32_t>, size_t> breaks_;
  std::map<std::pair<uint32_t, std::string>, size_t> calls_;  // by caller and id: where it is made
  std::map<Place, MainStory> mains_;
  bool found_afterwards_ = false;
  std::map<size_t, size_t> endangered_;  // messages, and the break that may have taken them
};

}  // namespace

Chronicle chronicle_of(const History& history) {
  Joining joining(history);
  for (const Entry& entry : history.entries()) joining.take(entry);
  return joining.result();
}

std::string_view message_of(const Moment& moment) {
  return moment.message ? message_name(moment.entry.message_type) : std::string_view();
}

size_t shutdown_messages(const Chronicle& chronicle) {
  if (!chronicle.shutdown_from) return 0;
  return static_cast<size_t>(std::count_if(
      chronicle.messages.begin(), chronicle.messages.end(),
      [&](const MessageTrip& trip) { return trip.sent >= *chronicle.shutdown_from; }));
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
