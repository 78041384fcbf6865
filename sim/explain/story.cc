#include "sim/explain/story.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <sstream>

#include "core/wire/message.h"
#include "sim/explain/call_chain.h"

namespace rehearsal::sim {
namespace {

// How much is left of a moment's nearness one step back at the same worker, and over a message.
constexpr double kStepBack = 0.94;
constexpr double kMessageBack = 0.99;

constexpr double kNamedInFailure = 120;
constexpr double kOnTheWay = 400;  // a call or a throw that led to the failure
constexpr double kInShutdown = 0.1;
constexpr double kAlways = 1000;  // what no story leaves out

bool is_housekeeping(uint32_t message_type) {
  constexpr std::array<std::string_view, 8> kNames = {"Ready",   "ShutdownReport", "ShutdownProbe",
                                                      "Leave",   "Goodbye",        "GroupView",
                                                      "Leaving", "NothingMore"};
  return std::find(kNames.begin(), kNames.end(), message_name(message_type)) != kNames.end();
}

double weight_of_event(const Entry& entry) {
  switch (entry.event) {
    case EventKind::peer_fenced:
      return 60;
    case EventKind::frame_dropped:
      return 50;
    case EventKind::peer_lost:
      return 25;
    case EventKind::frame:
    case EventKind::frame_sent:
      if (entry.peer == entry.worker) return 3;
      return is_housekeeping(entry.message_type) ? 2 : 20;
    case EventKind::call_executed:
    case EventKind::owner_created:
    case EventKind::owner_dropped:
    case EventKind::fork_registered:
    case EventKind::fork_deleted:
    case EventKind::fork_refused:
    case EventKind::user_created:
    case EventKind::user_deleted:
    case EventKind::optimizer_stepped:
    case EventKind::checkpoint_saved:
    case EventKind::checkpoint_loaded:
      return 18;
    case EventKind::note:
      return 30;
    case EventKind::context_opened:
    case EventKind::context_released:
    case EventKind::pass_started:
    case EventKind::pass_ended:
      return 15;
    case EventKind::api_call:  // Its message tells the same.
      return entry.detail.empty() ? 12 : 4;
    case EventKind::call_completed:  // As does the answer's.
      return entry.number == 0 ? 4 : 12;
    case EventKind::destructor_failed:
      return 30;
    case EventKind::reference_leaked:
    case EventKind::node_stopped:
      return 10;
    case EventKind::execution_started:
    case EventKind::execution_ended:
    case EventKind::call_served:
    case EventKind::mark:
      return 4;
    case EventKind::execution_parked:
    case EventKind::execution_resumed:
    case EventKind::frame_resent:  // its sending is told
    case EventKind::peer_up:
      return 1;
    case EventKind::ack_frame:
    case EventKind::drained:
    case EventKind::timer:
      return 0;
  }
  return 0;
}

double weight_of(const Moment& moment) {
  switch (moment.entry.kind) {
    case EntryKind::event:
      return weight_of_event(moment.entry);
    case EntryKind::crash:
    case EntryKind::restart:
      return 200;
    case EntryKind::broken:
      return 120;
    case EntryKind::partition:
      return 110;
    case EntryKind::healed:
      return 40;
    case EntryKind::decision:  // of the run as a whole, or of one moment
      return moment.entry.text.find(":#") != std::string::npos ? 5 : 100;
    case EntryKind::sent:
      return 40;
    case EntryKind::calm:
      return 8;
    case EntryKind::device:  // Only what the failure names.
      return 0;
    case EntryKind::thrown:  // Those on the way to the failure count by that.
      return 12;
    case EntryKind::arrived:
    case EntryKind::tables:
    case EntryKind::failed:
      return 0;
  }
  return 0;
}

std::vector<double> nearness(const Chronicle& chronicle) {
  std::vector<double> near(chronicle.moments.size(), 0);
  if (near.empty()) return near;
  if (chronicle.failed_at) {
    near[*chronicle.failed_at] = 1;
  } else {
    std::map<uint32_t, size_t> last;  // of each worker
    for (size_t i = 0; i < near.size(); ++i) last[chronicle.moments[i].entry.worker] = i;
    for (const auto& [worker, moment] : last) near[moment] = 1;
  }
  for (size_t i = near.size(); i-- > 0;) {
    const Moment& moment = chronicle.moments[i];
    for (const size_t cause : moment.causes) {
      const bool same = chronicle.moments[cause].entry.worker == moment.entry.worker;
      // Devices do a hundred things for one that their worker does.
      const double back = moment.entry.kind == EntryKind::device ? 1
                          : same                                 ? kStepBack
                                                                 : kMessageBack;
      near[cause] = std::max(near[cause], near[i] * back);
    }
  }
  return near;
}

// Of a kind that a run is full of, a single moment says little: up to nine count whole.
std::vector<double> rarity(const Chronicle& chronicle) {
  const auto is_common = [](const Moment& moment) {
    const Entry& entry = moment.entry;
    return entry.kind == EntryKind::event && entry.event != EventKind::peer_lost &&
           entry.event != EventKind::peer_fenced && entry.event != EventKind::frame_dropped &&
           entry.event != EventKind::note;
  };
  std::map<std::string_view, double> counts;
  for (const Moment& moment : chronicle.moments)
    if (!is_common(moment)) ++counts[name_of(moment)];
  std::vector<double> factors;
  for (const Moment& moment : chronicle.moments)
    factors.push_back(is_common(moment) ? 1
                                        : std::min(1.0, 3 / std::sqrt(counts.at(name_of(moment)))));
  return factors;
}

// Whether this is a step of an operation that a report of missing waits names.
bool names_operation(const Chronicle& chronicle, const Moment& moment, std::string_view failure) {
  const Entry& entry = moment.entry;
  if (entry.kind != EntryKind::device || entry.stream->step == StreamNote::Step::awaited)
    return false;
  const std::string number = "(operation " + std::to_string(entry.number);
  const auto names = [&failure](const std::string& text) {
    return failure.find(text) != std::string_view::npos;
  };
  return (names(number + ",") || names(number + ")")) &&
         names("'" + chronicle.workers.at(entry.worker) + "'");
}

bool names_one_of(const Entry& entry, const std::vector<std::string>& ids) {
  return std::any_of(ids.begin(), ids.end(), [&entry](const std::string& id) {
    return entry.id == id || entry.detail.find(id) != std::string::npos ||
           entry.text.find(id) != std::string::npos;
  });
}

}  // namespace

std::vector<std::string> ids_in(std::string_view text) {
  constexpr size_t kPathDigits = 8;
  const auto digit = [&text](size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  const auto hex = [&text](size_t i) {
    return std::isxdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  std::vector<std::string> ids;
  for (size_t mark = text.find('#'); mark != std::string_view::npos;
       mark = text.find('#', mark + 1)) {
    if (mark < kPathDigits || !digit(mark + 1)) continue;
    bool whole = true;
    for (size_t i = mark - kPathDigits; i < mark; ++i) whole = whole && hex(i);
    size_t end = mark + 1;
    while (digit(end)) ++end;
    if (whole) ids.emplace_back(text.substr(mark - kPathDigits, end - mark + kPathDigits));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<double> weigh(const Chronicle& chronicle, const Subject& subject) {
  const std::vector<std::string> ids = ids_in(subject.failure);
  const std::vector<double> rare = rarity(chronicle);
  std::vector<double> weights = nearness(chronicle);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Moment& moment = chronicle.moments[i];
    const double kind = weight_of(moment) * rare[i];
    weights[i] = kind * (0.3 + 2 * weights[i]);
    if (kind > 0 && names_one_of(moment.entry, ids)) weights[i] += kNamedInFailure;
    if (names_operation(chronicle, moment, subject.failure)) weights[i] += kNamedInFailure;
    if (chronicle.shutdown_from && i >= *chronicle.shutdown_from) weights[i] *= kInShutdown;
  }
  for (const size_t moment : call_chain(chronicle).moments) weights.at(moment) += kOnTheWay;
  if (chronicle.failed_at) weights.at(*chronicle.failed_at) += kAlways;
  if (subject.critical) {
    weights.at(subject.critical->first) += kAlways;
    if (subject.critical->second) weights.at(*subject.critical->second) += kAlways;
  }
  return weights;
}

std::vector<ThrownLine> thrown_lines(const Chronicle& chronicle, size_t places) {
  const auto failed = chronicle.failed_at;
  if (!failed || chronicle.moments[*failed].entry.kind != EntryKind::thrown) return {};
  std::vector<ThrownLine> lines;
  for (const size_t number : call_chain(chronicle).moments) {
    const Moment& moment = chronicle.moments[number];
    if (moment.entry.kind != EntryKind::thrown) continue;
    const bool is_first = lines.empty();
    const bool is_workers = moment.entry.worker != kNoWorker;
    std::string text = is_workers
                           ? (is_first ? "thrown at " : "then at ") + place_of(chronicle, moment)
                           : "thrown in " + moment.entry.detail;
    if (is_workers && moment.entry.detail != chronicle.workers.at(moment.entry.worker))
      text += ", in " + moment.entry.detail;
    if (is_first) text += ": " + moment.entry.text;
    std::replace(text.begin(), text.end(), '\n', ' ');
    lines.push_back({std::move(text), number});
    std::istringstream stack(moment.entry.stack);
    // Those who hand it on are told by where they called.
    size_t left = is_first ? places : 1;
    for (std::string line; left > 0 && std::getline(stack, line); --left)
      lines.push_back({"  " + line, number});
  }
  return lines;
}

std::vector<std::string> lines_of(const Chronicle& chronicle, const CriticalPair& pair) {
  std::vector<std::string> lines = {
      pair.verdict, "  A: it " + text_of(chronicle, chronicle.moments.at(pair.first)),
      "  B: it " + (pair.second ? text_of(chronicle, chronicle.moments.at(*pair.second))
                                : pair.second_text)};
  if (!pair.decision.empty()) lines.push_back("  decided by: " + pair.decision);
  return lines;
}

}  // namespace rehearsal::sim
