#include "sim/world/event_causes.h"

#include <algorithm>
#include <set>

namespace rehearsal::sim {
namespace {

// Back from an event along its own story.
constexpr size_t kStorySteps = 5;

std::string_view next_word(std::string_view& rest) {
  const size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

std::optional<EventLine> parse_event_line(std::string_view line) {
  if (!is_number(next_word(line)) || !is_number(next_word(line))) return std::nullopt;
  EventLine parsed;
  parsed.place = next_word(line);
  parsed.worker = parsed.place.substr(0, parsed.place.rfind('.'));
  parsed.kind = next_word(line);
  if (parsed.kind.empty()) return std::nullopt;
  while (!line.empty() && line.front() != '"') {
    const std::string_view word = next_word(line);
    const auto take = [word](std::string_view name, std::string& value) {
      if (word.starts_with(name)) value = word.substr(name.size());
    };
    take("peer=", parsed.peer);
    take("id=", parsed.id);
    take("message=", parsed.message);
    take("number=", parsed.number);
  }
  return parsed;
}

std::string key_of(const EventLine& line) {
  std::string key = line.kind;
  if (!line.message.empty()) key += " " + line.message;
  if (!line.id.empty()) key += " " + line.id;
  if (line.id.empty() && !line.number.empty()) key += " " + line.number;
  key += " at " + line.place;
  if (line.kind == "frame") key += " from " + line.peer;
  return key;
}

void EventCauses::add(const std::string& line) {
  const auto parsed = parse_event_line(line);
  if (!parsed) return;
  known_.push_back({line, *parsed});
  if (known_.size() > kLinesMax) known_.pop_front();
}

std::vector<std::string> EventCauses::of(const std::string& next, size_t count) const {
  const auto first = parse_event_line(next);
  if (!first) return {};
  std::set<size_t> causes;
  EventLine line = *first;
  size_t end = known_.size();
  while (causes.size() < std::min(kStorySteps, count)) {
    auto before = sending_of(line, end);
    if (!before) before = same_story(line, end);
    if (!before) before = before_at_worker(line, end);
    if (!before) break;
    causes.insert(*before);
    end = *before;
    line = known_[end].parsed;
  }
  std::set<size_t> open;
  const auto open_causes_of = [&](const EventLine& of, size_t place) {
    for (const auto& cause : {before_at_worker(of, place), sending_of(of, place)})
      if (cause) open.insert(*cause);
  };
  open_causes_of(*first, known_.size());
  while (causes.size() < count && !open.empty()) {
    const size_t latest = *open.rbegin();
    open.erase(latest);
    causes.insert(latest);
    open_causes_of(known_[latest].parsed, latest);
  }
  std::vector<std::string> lines;
  for (const size_t place : causes) lines.push_back(known_[place].text);
  return lines;
}

std::optional<size_t> EventCauses::before_at_worker(const EventLine& line, size_t end) const {
  while (end-- > 0)
    if (known_[end].parsed.place == line.place) return end;
  return std::nullopt;
}

std::optional<size_t> EventCauses::sending_of(const EventLine& line, size_t end) const {
  if (line.kind != "frame") return std::nullopt;
  while (end-- > 0) {
    const EventLine& other = known_[end].parsed;
    if (other.kind == "frame_sent" && other.worker == line.peer && other.peer == line.worker &&
        other.id == line.id && other.message == line.message && other.number == line.number)
      return end;
  }
  return std::nullopt;
}

std::optional<size_t> EventCauses::same_story(const EventLine& line, size_t end) const {
  if (line.id.empty()) return std::nullopt;
  while (end-- > 0)
    if (known_[end].parsed.place == line.place && known_[end].parsed.id == line.id) return end;
  return std::nullopt;
}

}  // namespace rehearsal::sim
