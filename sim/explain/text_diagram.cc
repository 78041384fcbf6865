#include "sim/explain/text_diagram.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "core/base/printable.h"
#include "sim/explain/autograd_note.h"
#include "sim/places/source_places.h"

namespace rehearsal::sim {
namespace {

constexpr size_t kWorkersMax = 8;
constexpr size_t kLaneMin = 8;
constexpr size_t kLaneMax = 12;
constexpr size_t kTimeColumns = 11;
constexpr size_t kTextColumnsMin = 40;
constexpr double kWeightMin = 28;  // what weighs less says too little to be shown, …
constexpr size_t kRowsMin = 16;    // … unless there are fewer rows: then so little is enough
constexpr double kWeightMinOfFew = 10;

// The letters of an arrow: each kind of message of a backward pass has its own. A spine that is
// crossed stays visible.
struct Stroke {
  const char* letter;
  const char* crossing;
};
Stroke stroke_of(PassTraffic traffic) {
  switch (traffic) {
    case PassTraffic::gradients:
      return {"═", "╪"};
    case PassTraffic::marks:
      return {"·", "┼"};
    case PassTraffic::waves:
      return {"~", "┼"};
    case PassTraffic::none:
      break;
  }
  return {"─", "┼"};
}
constexpr Stroke kBroken{"╌", "┼"};
constexpr const char* kStrokesText =
    "(in a backward pass: ═ gradients, · marks, ~ waves over workers)";

// A line whose places hold one letter each, of any width in bytes.
using Line = std::vector<std::string>;

std::string joined(const Line& line) {
  return std::accumulate(line.begin(), line.end(), std::string());
}

// At most `columns` letters of UTF-8 text, on one line; … says that something is missing.
std::string clipped(const std::string& given, size_t columns) {
  const std::string text = printable_lines(given);
  std::string result;
  size_t letters = 0;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    if (letters + 1 == columns && end < text.size()) return result + "…";
    const bool control = static_cast<unsigned char>(text[i]) < ' ';
    result += control ? std::string(" ") : text.substr(i, end - i);
    if (++letters == columns) return result;
    i = end;
  }
  return result;
}

// "trainer12" in five letters is "tra12".
std::string cut_to(const std::string& name, size_t letters) {
  if (name.size() <= letters) return name;
  size_t digits = 0;
  while (digits < name.size() && digits + 1 < letters &&
         std::isdigit(static_cast<unsigned char>(name[name.size() - 1 - digits])) != 0)
    ++digits;
  return name.substr(0, letters - digits) + name.substr(name.size() - digits);
}

// A line of a stack with its file's name only: "  at push, training.cc:27".
std::string with_short_place(const std::string& line) {
  if (!line.starts_with("  ")) return line;
  const std::string place = short_place(line);
  const std::string function = line.substr(2, line.rfind(' ') - 2);
  return "  at " + (place.empty() ? line.substr(2) : function + ", " + place);
}

// One line of the picture: a moment, or the sending and the taking of a message in one.
struct Row {
  size_t place = 0;  // the moment whose time it has
  size_t moment = 0;
  std::optional<size_t> taken;  // the same message's arrival, if it is in this row
};

class Diagram {
 public:
  Diagram(const Chronicle& chronicle, const Subject& subject, DiagramSize size)
      : chronicle_(chronicle), subject_(subject), size_(size) {
    for (const ThrownLine& line : thrown_lines(chronicle, kPlacesShown))
      thrown_.push_back(clipped(with_short_place(line.text), size_.columns));
    has_passes_ = std::ranges::any_of(chronicle.moments, [](const Moment& moment) {
      return pass_traffic(message_of(moment)) != PassTraffic::none;
    });
    const std::vector<double> weights = weigh(chronicle, subject);
    choose_workers(weights);
    choose_moments(weights);
  }

  std::string text() {
    std::string text = head();
    bool is_folded = !chronicle_.shutdown_from;
    for (const Row& row : rows()) {
      if (!is_folded && row.place >= *chronicle_.shutdown_from) {
        text += fold();
        is_folded = true;
      }
      text += line_of(row);
    }
    return text + (is_folded ? "" : fold()) + foot();
  }

 private:
  size_t rows_max() const {
    const size_t around =
        4 + thrown_.size() + critical_lines().size() + (has_passes_ ? size_t{1} : size_t{0});
    return size_.lines > around ? size_.lines - around : 1;
  }
  size_t lane() const {
    const size_t room = size_.columns - kTimeColumns - kTextColumnsMin;
    size_t wanted = kLaneMin;
    for (const uint32_t worker : shown_)
      wanted = std::max(wanted, chronicle_.workers[worker].size() + 2);
    wanted = std::min({wanted, kLaneMax, room / std::max<size_t>(shown_.size(), 1)});
    return std::max<size_t>(wanted, 6);
  }
  size_t text_columns() const { return size_.columns - kTimeColumns - lane() * shown_.size(); }

  // Those that matter most, in the order of ranks.
  void choose_workers(const std::vector<double>& weights) {
    std::vector<double> sums(chronicle_.workers.size(), 0);
    for (size_t i = 0; i < weights.size(); ++i) {
      const Entry& entry = chronicle_.moments[i].entry;
      if (entry.worker < sums.size()) sums[entry.worker] += weights[i];
    }
    shown_.resize(sums.size());
    std::iota(shown_.begin(), shown_.end(), 0U);
    if (shown_.size() > kWorkersMax) {
      std::stable_sort(shown_.begin(), shown_.end(),
                       [&sums](uint32_t one, uint32_t other) { return sums[one] > sums[other]; });
      shown_.resize(kWorkersMax);
      std::sort(shown_.begin(), shown_.end());
    }
  }

  std::optional<size_t> column_of(uint32_t worker) const {
    const auto found = std::lower_bound(shown_.begin(), shown_.end(), worker);
    if (found == shown_.end() || *found != worker) return std::nullopt;
    return static_cast<size_t>(found - shown_.begin());
  }

  bool can_be_shown(const Moment& moment) const {
    return moment.entry.worker == kNoWorker || column_of(moment.entry.worker).has_value();
  }

  // The weightiest moments, each message with both its ends, while there is room.
  void choose_moments(const std::vector<double>& weights) {
    std::vector<size_t> order(weights.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&weights](size_t one, size_t other) {
      return weights[one] > weights[other];
    });
    size_t misses = 0;
    for (const size_t moment : order) {
      const double least = rows().size() < kRowsMin ? kWeightMinOfFew : kWeightMin;
      if (weights[moment] < least || misses > size_.lines) break;
      if (chosen_.contains(moment) || !can_be_shown(chronicle_.moments[moment])) continue;
      std::set<size_t> before = chosen_;
      choose(moment);
      if (rows().size() <= rows_max()) continue;
      chosen_ = std::move(before);
      ++misses;
    }
  }

  void choose(size_t moment) {
    chosen_.insert(moment);
    const auto message = chronicle_.moments[moment].message;
    if (!message) return;
    const MessageTrip& trip = chronicle_.messages[*message];
    for (const size_t end : {trip.sent, trip.arrived.value_or(trip.sent)})
      if (can_be_shown(chronicle_.moments[end])) chosen_.insert(end);
  }

  // Sending and taking share a row if the sender shows nothing in between (then it stands where the
  // message is taken), or else the receiver nothing (then where it is sent). So each worker's own
  // moments stand in their order.
  std::vector<Row> rows() const {
    std::map<size_t, size_t> places;  // of each moment, while rows are joined
    for (const size_t moment : chosen_) places[moment] = moment;
    std::map<size_t, Row> rows;  // by place
    for (const size_t moment : chosen_) {
      const auto message = chronicle_.moments[moment].message;
      if (!message || chronicle_.messages[*message].sent != moment) continue;
      const auto arrived = chronicle_.messages[*message].arrived;
      if (!arrived || !chosen_.contains(*arrived)) continue;
      if (is_free(places, moment, moment, *arrived)) {
        places[moment] = *arrived;
      } else if (is_free(places, *arrived, moment, *arrived)) {
        places[*arrived] = moment;
      } else {
        continue;
      }
      rows[places[moment]] = {places[moment], moment, arrived};
    }
    for (const auto& [moment, place] : places)
      rows.try_emplace(place, Row{.place = place, .moment = moment, .taken = {}});
    std::vector<Row> sorted;
    for (const auto& [place, row] : rows) sorted.push_back(row);
    return sorted;
  }

  // Whether the worker of `moment` shows nothing between two places.
  bool is_free(const std::map<size_t, size_t>& places, size_t moment, size_t first,
               size_t last) const {
    const uint32_t worker = chronicle_.moments[moment].entry.worker;
    for (const auto& [other, place] : places) {
      if (place <= first || place >= last) continue;
      const Entry& entry = chronicle_.moments[other].entry;
      const bool ends_link = entry.kind == EntryKind::broken && entry.peer == worker;
      if (entry.worker == worker || ends_link) return false;
    }
    return true;
  }

  // --- lines ---

  std::string head() const {
    std::string text = clipped(subject_.title, size_.columns) + "\n";
    text += "    seconds  ";
    for (const uint32_t worker : shown_) {
      const std::string name = cut_to(chronicle_.workers[worker], lane() - 1);
      text += name + std::string(lane() - name.size(), ' ');
    }
    while (text.back() == ' ') text.pop_back();
    return text + "\n";
  }

  std::vector<std::string> critical_lines() const {
    std::vector<std::string> lines;
    if (!subject_.critical) {
      for (const std::string& line : subject_.notes) lines.push_back(clipped(line, size_.columns));
      return lines;
    }
    for (const std::string& line : lines_of(chronicle_, *subject_.critical))
      lines.push_back(clipped(line, size_.columns));
    return lines;
  }

  // In place of the shutdown.
  std::string fold() const {
    const size_t messages = shutdown_messages(chronicle_);
    return std::string(kTimeColumns - 2, ' ') + "…  " + joined(spines()) + "… shutdown, " +
           std::to_string(messages) + (messages == 1 ? " message\n" : " messages\n");
  }

  std::string foot() const {
    std::string text;
    for (const std::string& line : thrown_) text += line + "\n";
    for (const std::string& line : critical_lines()) text += line + "\n";
    if (std::ranges::any_of(
            chosen_, [this](size_t moment) { return traffic_of(moment) != PassTraffic::none; }))
      text += clipped(kStrokesText, size_.columns) + "\n";
    const size_t left_out = chronicle_.moments.size() - chosen_.size();
    if (left_out == 0) return text;
    std::string note = "(" + std::to_string(left_out) +
                       (left_out == 1 ? " event is left out" : " events are left out");
    if (shown_.size() < chronicle_.workers.size())
      note += ", and " + std::to_string(chronicle_.workers.size() - shown_.size()) + " workers";
    return text + note + ")\n";
  }

  std::string line_of(const Row& row) {
    const Moment& moment = chronicle_.moments[row.moment];
    Line line = spines();
    draw(line, row);
    note_life(moment.entry);
    std::array<char, 32> time{};
    const int64_t nanoseconds = chronicle_.moments[row.place].entry.when.time_since_epoch().count();
    std::snprintf(time.data(), time.size(), "%4lld.%06lld",
                  static_cast<long long>(nanoseconds / 1'000'000'000),
                  static_cast<long long>(nanoseconds / 1000 % 1'000'000));
    std::string text =
        std::string(time.data()) + "  " + joined(line) + clipped(words(row), text_columns() - 2);
    while (text.back() == ' ') text.pop_back();
    return text + "\n";
  }

  Line spines() const {
    Line line(lane() * shown_.size(), " ");
    for (size_t i = 0; i < shown_.size(); ++i)
      line[i * lane()] = dead_.contains(shown_[i]) ? " " : "│";
    return line;
  }

  void note_life(const Entry& entry) {
    if (entry.kind == EntryKind::crash) dead_.insert(entry.worker);
    if (entry.kind == EntryKind::restart) dead_.erase(entry.worker);
  }

  // The sign at a worker's column in the row of this moment.
  std::string sign_of(size_t moment) const {
    if (subject_.critical && moment == subject_.critical->first) return "A";
    if (subject_.critical && subject_.critical->second == moment) return "B";
    const EntryKind kind = chronicle_.moments[moment].entry.kind;
    if (chronicle_.failed_at == moment || kind == EntryKind::thrown) return "!";
    switch (kind) {
      case EntryKind::crash:
        return "#";
      case EntryKind::restart:
        return "^";
      case EntryKind::broken:
        return "×";
      default:
        return "●";
    }
  }

  PassTraffic traffic_of(size_t moment) const {
    return pass_traffic(message_of(chronicle_.moments[moment]));
  }

  void draw(Line& line, const Row& row) const {
    const Moment& moment = chronicle_.moments[row.moment];
    const auto here = column_of(moment.entry.worker);
    if (!here) return;
    const size_t from = *here * lane();
    const auto there = column_of(moment.entry.peer);
    if (there && *there != *here) {
      const size_t to = *there * lane();
      if (row.taken) {
        stroke(line, from, to, stroke_of(traffic_of(row.moment)));
        line[to] = sign_of(*row.taken) == "●" ? (to > from ? "▶" : "◀") : sign_of(*row.taken);
      } else if (moment.entry.kind == EntryKind::broken) {
        stroke(line, from, to, kBroken);
        line[to] = "×";
      } else if (moment.message) {
        draw_half(line, moment, row.moment, from, to);
      }
    }
    line[from] = sign_of(row.moment);
  }

  // One end of a message whose other end is in another row, or nowhere.
  void draw_half(Line& line, const Moment& moment, size_t number, size_t here, size_t other) const {
    const MessageTrip& trip = chronicle_.messages[*moment.message];
    const PassTraffic traffic = traffic_of(number);
    const char* const letter = traffic == PassTraffic::none ? "╌" : stroke_of(traffic).letter;
    const bool right = other > here;
    const auto next = [&](size_t steps) { return right ? here + steps : here - steps; };
    if (number != trip.sent) {
      for (const size_t steps : {3, 2}) line[next(steps)] = letter;
      line[next(1)] = right ? "◀" : "▶";
    } else if (trip.arrived) {
      for (const size_t steps : {1, 2}) line[next(steps)] = letter;
      line[next(3)] = right ? "▷" : "◁";
    } else {
      const size_t end = right ? other - 2 : other + 2;
      stroke(line, here, end, stroke_of(traffic));
      line[end] = trip.lost_at ? "×" : "…";
    }
  }

  // Everything between two places.
  static void stroke(Line& line, size_t from, size_t to, Stroke stroke) {
    for (size_t i = std::min(from, to) + 1; i < std::max(from, to); ++i)
      line[i] = line[i] == "│" ? stroke.crossing : stroke.letter;
  }

  std::string words(const Row& row) const {
    const bool fails = row.moment == chronicle_.failed_at || row.taken == chronicle_.failed_at;
    return (fails && chronicle_.failed_at ? "fails here: " : "") + what(row);
  }

  std::string what(const Row& row) const {
    const Moment& moment = chronicle_.moments[row.moment];
    std::string text = text_of(chronicle_, moment);
    // Ids help those who look for the one that the failure names.
    const std::string id = " [" + moment.entry.id + "]";
    if (!names_ids_ && text.ends_with(id)) text.resize(text.size() - id.size());
    if (!moment.message) return text;
    const MessageTrip& trip = chronicle_.messages[*moment.message];
    // The arrow says who sends and who takes.
    const std::string to = " to " + chronicle_.workers.at(moment.entry.peer);
    if (const size_t place = text.rfind(to); row.taken && place != std::string::npos) {
      text.erase(place, to.size());
      if (text.starts_with("sends ")) text.erase(0, 6);
    }
    if (row.taken && chronicle_.moments[*row.taken].entry.event == EventKind::frame_dropped)
      text += ", dropped: " + chronicle_.moments[*row.taken].entry.text;
    if (row.moment == trip.sent && trip.lost_at) text += ", lost";
    return text;
  }

  const Chronicle& chronicle_;
  const Subject& subject_;
  const DiagramSize size_;
  const bool names_ids_ = !ids_in(subject_.failure).empty();
  std::vector<uint32_t> shown_;      // workers, sorted
  std::vector<std::string> thrown_;  // lines that tell where
  bool has_passes_ = false;          // backward passes
  std::set<size_t> chosen_;          // moments
  std::set<uint32_t> dead_;          // workers, at the row that is being written
};

}  // namespace

std::string text_diagram(const Chronicle& chronicle, const Subject& subject, DiagramSize size) {
  return Diagram(chronicle, subject, size).text();
}

}  // namespace rehearsal::sim
