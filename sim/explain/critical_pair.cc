#include "sim/explain/critical_pair.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/wire/message.h"

namespace rehearsal::sim {
namespace {

// The subject of an event. The last part tells those apart that are about the same.
using Name = std::tuple<uint32_t, uint32_t, std::string_view, uint32_t, std::string, uint32_t,
                        std::string, uint64_t>;

// One event that a worker took in.
struct Intake {
  Name name;
  size_t moment = 0;
};

// How much an intake says to who wrote the program; what comes from outside decides what a worker
// does, the rest follows.
enum class Tells : uint8_t {
  nothing,  // it does not come from outside
  links,    // a link has come up or gone
  protocol,
  program,  // a call, its answer, the start of a function; a crash
};

Tells tells(const Moment& moment) {
  const Entry& entry = moment.entry;
  if (entry.kind == EntryKind::crash || entry.kind == EntryKind::restart) return Tells::program;
  if (entry.kind != EntryKind::event) return Tells::nothing;
  switch (entry.event) {
    case EventKind::execution_started:
      return entry.text == "continuation" ? Tells::protocol : Tells::program;
    case EventKind::execution_resumed:
      return Tells::protocol;  // The event that it waited for says more.
    case EventKind::frame:
    case EventKind::frame_dropped: {
      const std::string_view message = message_name(entry.message_type);
      const bool of_program = message == "Call" || message == "Response" || message == "Item" ||
                              message == "End" || message == "Cancel";
      return of_program ? Tells::program : Tells::protocol;
    }
    case EventKind::peer_up:
    case EventKind::peer_lost:
      return Tells::links;
    default:
      return Tells::nothing;
  }
}

using Intakes = std::vector<std::vector<Intake>>;  // by worker

// Those that tell so much at least.
Intakes intakes_of(const Chronicle& chronicle, Tells least) {
  Intakes intakes(chronicle.workers.size());
  std::map<Name, uint64_t> seen;
  for (size_t i = 0; i < chronicle.moments.size(); ++i) {
    const Moment& moment = chronicle.moments[i];
    const Entry& entry = moment.entry;
    if (tells(moment) < least || entry.worker >= intakes.size()) continue;
    Name name{entry.worker, entry.life,         name_of(moment), entry.peer,
              entry.id,     entry.message_type, entry.text,      0};
    std::get<7>(name) = seen[name]++;
    intakes[entry.worker].push_back({name, i});
  }
  return intakes;
}

// Where one worker's two sequences part.
struct Parting {
  size_t first = 0;                // moment of the failing run
  std::optional<size_t> second;    // what the holding run has instead, in the failing run …
  size_t instead = 0;              // … and in the holding run
  bool first_holds_later = false;  // the first comes later in the holding run
};

std::optional<Parting> parting_of(const std::vector<Intake>& failing,
                                  const std::vector<Intake>& holding) {
  const auto differs = [](const Intake& one, const Intake& other) {
    return one.name != other.name;
  };
  size_t i = 0;
  while (i < failing.size() && i < holding.size() && !differs(failing[i], holding[i])) ++i;
  if (i == failing.size() || i == holding.size()) return std::nullopt;
  Parting parting{.first = failing[i].moment, .second = {}, .instead = holding[i].moment};
  const auto later =
      std::find_if(failing.begin() + static_cast<ptrdiff_t>(i), failing.end(),
                   [&](const Intake& intake) { return !differs(intake, holding[i]); });
  if (later != failing.end()) parting.second = later->moment;
  parting.first_holds_later =
      std::any_of(holding.begin() + static_cast<ptrdiff_t>(i), holding.end(),
                  [&](const Intake& intake) { return !differs(intake, failing[i]); });
  return parting;
}

// The ids that a moment is about: its own, those in its text, its context.
std::set<std::string> ids_of(const Chronicle& chronicle, size_t number) {
  std::set<std::string> ids;
  const auto add = [&](const Moment& moment) {
    if (!moment.entry.id.empty()) ids.insert(moment.entry.id);
    if (moment.entry.autograd) ids.insert(moment.entry.autograd->context);
    for (std::string& id : ids_in(text_of(chronicle, moment))) ids.insert(std::move(id));
  };
  const Moment& moment = chronicle.moments[number];
  add(moment);
  if (moment.message) add(chronicle.moments[chronicle.messages[*moment.message].sent]);
  return ids;
}

// Whether two moments are about the same call, reference or context. They may be of two runs.
bool share_ids(const std::set<std::string>& one, const std::set<std::string>& other) {
  return std::ranges::any_of(one, [&other](const auto& id) { return other.contains(id); });
}

// Whether two ids, as people read them (path#number), are those of neighbours: what one caller has
// made, one right behind the other.
bool are_neighbours(const std::string& one, const std::string& other) {
  const size_t mark = one.find('#') + 1;
  if (mark == 0 || mark != other.find('#') + 1 || one.compare(0, mark, other, 0, mark) != 0)
    return false;
  uint64_t number = 0;
  uint64_t other_number = 0;
  std::from_chars(one.data() + mark, one.data() + one.size(), number);
  std::from_chars(other.data() + mark, other.data() + other.size(), other_number);
  return number + 1 == other_number || other_number + 1 == number;
}

// Whether the message that came second was on its way before the first one was caused.
bool has_overtaken(const Chronicle& chronicle, size_t first, size_t second) {
  const auto origin = [&chronicle](size_t number) {
    const auto& message = chronicle.moments[number].message;
    return message ? chronicle.messages[*message].sent : number;
  };
  const size_t sent = origin(second);
  const size_t caused = origin(first);
  return sent < caused && causal_past(chronicle, caused)[sent];
}

// Of all that comes before the second moment, and in the holding run behind it, what has most to do
// with it.
size_t first_of_pair(const Chronicle& failing, const Chronicle& holding, size_t first,
                     size_t second) {
  constexpr size_t kLookedAt = 64;
  const uint32_t worker = failing.moments[second].entry.worker;
  const std::vector<Intake> fails = intakes_of(failing, Tells::links).at(worker);
  const std::vector<Intake> holds = intakes_of(holding, Tells::links).at(worker);
  std::map<Name, size_t> held_at;
  for (const Intake& intake : holds) held_at.emplace(intake.name, intake.moment);
  const auto at_second = std::ranges::find(fails, second, &Intake::moment);
  const auto limit = held_at.find(at_second->name);
  if (limit == held_at.end()) return first;
  const std::set<std::string> about = ids_of(failing, second);
  const auto rank = [&](size_t moment) {
    const std::set<std::string> ids = ids_of(failing, moment);
    const bool shares = share_ids(ids, about);
    const bool overtook = has_overtaken(failing, moment, second);
    return std::tuple(static_cast<int>(shares) + static_cast<int>(overtook), shares,
                      tells(failing.moments[moment]));
  };
  auto best = rank(first);
  size_t looked_at = 0;
  for (auto intake = at_second; intake != fails.begin() && looked_at < kLookedAt; ++looked_at) {
    --intake;
    const auto held = held_at.find(intake->name);
    if (held == held_at.end() || held->second < limit->second) continue;
    if (const auto of_it = rank(intake->moment); of_it > best) {
      best = of_it;
      first = intake->moment;
    }
  }
  return first;
}

// The calls of the program, by who makes them.
std::set<std::pair<uint32_t, std::string>> calls_of(const Chronicle& chronicle, size_t end) {
  std::set<std::pair<uint32_t, std::string>> calls;
  for (size_t i = 0; i < end; ++i) {
    const Entry& entry = chronicle.moments[i].entry;
    if (entry.kind == EntryKind::event && entry.event == EventKind::api_call)
      calls.emplace(entry.worker, entry.id);
  }
  return calls;
}

bool makes_all_calls(const Chronicle& holding, const Chronicle& failing) {
  const size_t end = failing.failed_at.value_or(failing.moments.size());
  const auto made = calls_of(holding, holding.moments.size());
  const auto needed = calls_of(failing, end);
  return std::ranges::all_of(needed, [&made](const auto& call) { return made.contains(call); });
}

// Whether the two are about the same or about neighbours, or one message has overtaken another one
// of its sender.
bool are_related(const Chronicle& failing, const Chronicle& holding, const Parting& parting) {
  const Moment& first = failing.moments[parting.first];
  const Moment& instead = holding.moments[parting.instead];
  if (are_neighbours(first.entry.id, instead.entry.id) ||
      share_ids(ids_of(failing, parting.first), ids_of(holding, parting.instead)))
    return true;
  return parting.second && first.message && instead.message &&
         first.entry.peer == instead.entry.peer &&
         has_overtaken(failing, parting.first, *parting.second);
}

std::string verdict_of(const Chronicle& failing, const Parting& parting) {
  const std::string text = "critical at " + place_of(failing, failing.moments[parting.first]);
  if (!parting.first_holds_later) return text + ": with A next it fails, with B next it holds";
  if (parting.second) return text + ": A before B fails, B before A holds";
  return text + ": A without B before it fails, B before A holds";
}

// The earliest parting among those intakes that lies before the failure.
std::optional<Parting> earliest_parting(const Chronicle& failing, const Chronicle& holding,
                                        Tells least) {
  const Intakes fails = intakes_of(failing, least);
  const Intakes holds = intakes_of(holding, least);
  std::optional<Parting> earliest;
  for (size_t worker = 0; worker < std::min(fails.size(), holds.size()); ++worker) {
    const auto parting = parting_of(fails[worker], holds[worker]);
    const bool is_too_late = parting && failing.failed_at && parting->first > *failing.failed_at;
    if (parting && !is_too_late && (!earliest || parting->first < earliest->first))
      earliest = parting;
  }
  return earliest;
}

}  // namespace

std::optional<CriticalPair> critical_pair(const Chronicle& failing, const Chronicle& holding,
                                          const std::string& decision) {
  const bool makes_all = makes_all_calls(holding, failing);
  std::optional<CriticalPair> pair;
  for (const Tells least : {Tells::program, Tells::protocol, Tells::links}) {
    auto parting = earliest_parting(failing, holding, least);
    if (!parting) continue;
    if (parting->second && parting->first_holds_later)
      parting->first = first_of_pair(failing, holding, parting->first, *parting->second);
    const bool decides = makes_all && are_related(failing, holding, *parting);
    if (pair && !decides) continue;
    pair = CriticalPair{.first = parting->first,
                        .second = parting->second,
                        .verdict = verdict_of(failing, *parting),
                        .decision = decision,
                        .second_text = text_of(holding, holding.moments[parting->instead]),
                        .decides = decides};
    if (decides) break;
  }
  return pair;
}

bool is_better(const Chronicle& failing, const CriticalPair& one, const CriticalPair& other) {
  const auto rank = [&failing](const CriticalPair& pair) {
    return std::tuple(pair.decides, tells(failing.moments.at(pair.first)), pair.second.has_value(),
                      pair.first);
  };
  return rank(one) > rank(other);
}

std::optional<CriticalPair> same_pair_in(const Chronicle& other, const CriticalPair& pair,
                                         const Chronicle& chronicle) {
  const auto find = [&](size_t moment) -> std::optional<size_t> {
    const uint32_t worker = chronicle.moments[moment].entry.worker;
    const std::vector<Intake> here = intakes_of(chronicle, Tells::links).at(worker);
    const std::vector<Intake> there = intakes_of(other, Tells::links).at(worker);
    const auto known = std::find_if(here.begin(), here.end(), [moment](const Intake& intake) {
      return intake.moment == moment;
    });
    const auto found = std::find_if(there.begin(), there.end(), [&](const Intake& intake) {
      return known != here.end() && intake.name == known->name;
    });
    return found == there.end() ? std::nullopt : std::optional(found->moment);
  };
  const auto first = find(pair.first);
  if (!first) return std::nullopt;
  CriticalPair same = pair;
  same.first = *first;
  same.second.reset();
  if (pair.second) same.second = find(*pair.second);
  if (same.second && *same.second < *first) return std::nullopt;
  return same;
}

}  // namespace rehearsal::sim
