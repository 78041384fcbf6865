#include "sim/explain/critical_pair.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

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

// Input from outside decides what a worker does; the rest follows.
bool comes_from_outside(const Entry& entry) {
  if (entry.kind == EntryKind::crash || entry.kind == EntryKind::restart) return true;
  if (entry.kind != EntryKind::event) return false;
  switch (entry.event) {
    case EventKind::frame:
    case EventKind::frame_dropped:
    case EventKind::peer_up:
    case EventKind::peer_lost:
    case EventKind::execution_started:
    case EventKind::execution_resumed:
      return true;
    default:
      return false;
  }
}

std::vector<std::vector<Intake>> intakes_of(const Chronicle& chronicle) {
  std::vector<std::vector<Intake>> intakes(chronicle.workers.size());
  std::map<Name, uint64_t> seen;
  for (size_t i = 0; i < chronicle.moments.size(); ++i) {
    const Moment& moment = chronicle.moments[i];
    const Entry& entry = moment.entry;
    if (!comes_from_outside(entry) || entry.worker >= intakes.size()) continue;
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

std::string verdict_of(const Chronicle& failing, const Parting& parting,
                       const std::string& decision) {
  std::string text = "critical at " + place_of(failing, failing.moments[parting.first]);
  if (!decision.empty()) text += " (" + decision + ")";
  if (!parting.first_holds_later) return text + ": with A next it fails, with B next it holds";
  if (parting.second) return text + ": A before B fails, B before A holds";
  return text + ": A without B before it fails, B before A holds";
}

}  // namespace

std::optional<CriticalPair> critical_pair(const Chronicle& failing, const Chronicle& holding,
                                          const std::string& decision) {
  const auto fails = intakes_of(failing);
  const auto holds = intakes_of(holding);
  std::optional<Parting> earliest;
  for (size_t worker = 0; worker < std::min(fails.size(), holds.size()); ++worker) {
    const auto parting = parting_of(fails[worker], holds[worker]);
    if (parting && (!earliest || parting->first < earliest->first)) earliest = parting;
  }
  if (!earliest) return std::nullopt;
  return CriticalPair{.first = earliest->first,
                      .second = earliest->second,
                      .verdict = verdict_of(failing, *earliest, decision),
                      .second_text = text_of(holding, holding.moments[earliest->instead])};
}

std::optional<CriticalPair> same_pair_in(const Chronicle& other, const CriticalPair& pair,
                                         const Chronicle& chronicle) {
  const auto find = [&](size_t moment) -> std::optional<size_t> {
    const uint32_t worker = chronicle.moments[moment].entry.worker;
    const std::vector<Intake> here = intakes_of(chronicle).at(worker);
    const std::vector<Intake> there = intakes_of(other).at(worker);
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
  CriticalPair same{
      .first = *first, .second = {}, .verdict = pair.verdict, .second_text = pair.second_text};
  if (pair.second) same.second = find(*pair.second);
  if (same.second && *same.second < *first) return std::nullopt;
  return same;
}

}  // namespace rehearsal::sim
