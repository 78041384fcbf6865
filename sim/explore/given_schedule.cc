#include "sim/explore/given_schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <string>

namespace rehearsal::sim::explore {
namespace {

using Kind = Transition::Kind;

// Reads a whole number off the front of `text`.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  return number;
}

bool take_letter(std::string_view& text, char letter) {
  if (!text.starts_with(letter)) return false;
  text.remove_prefix(1);
  return true;
}

// The parts of `text` between separators; none of an empty text.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<Transition> parse_fault(std::string_view text, size_t workers) {
  for (const Kind kind : {Kind::cut, Kind::crash, Kind::give_up}) {
    std::string name = to_string(Transition{kind, 0, 0});
    name.resize(name.find(':') + 1);
    if (!text.starts_with(name)) continue;
    std::string_view rest = text.substr(name.size());
    const auto first = take_number(rest);
    std::optional<uint64_t> second = 0;
    if (kind != Kind::crash) second = take_letter(rest, ',') ? take_number(rest) : std::nullopt;
    if (!first || !second || !rest.empty() || *first >= workers || *second >= workers) break;
    if (kind != Kind::crash && *first == *second) break;
    return Transition{kind, static_cast<uint32_t>(*first), static_cast<uint32_t>(*second)};
  }
  return std::nullopt;
}

// `wrong` makes the exception for a part that is no fault.
template <class Wrong>
std::vector<Transition> faults_of(std::string_view text, size_t workers, const Wrong& wrong) {
  std::vector<Transition> faults;
  for (const std::string_view part : split(text, ';')) {
    const auto fault = parse_fault(part, workers);
    if (!fault) throw wrong(part);
    faults.push_back(*fault);
  }
  return faults;
}

std::optional<Schedule::Deviation> parse_deviation(std::string_view text) {
  Schedule::Deviation deviation;
  const auto step = take_number(text);
  if (!step) return std::nullopt;
  deviation.step = *step;
  if (take_letter(text, '.')) {
    deviation.choice = take_number(text);
    if (!deviation.choice) return std::nullopt;
  }
  if (!take_letter(text, '=')) return std::nullopt;
  const auto value = take_number(text);
  if (!value || *value == 0 || !text.empty()) return std::nullopt;
  deviation.value = *value;
  return deviation;
}

}  // namespace

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (const Transition& fault : schedule.faults)
    text += (text.empty() ? "" : ";") + to_string(fault);
  text += '@';
  const char* separator = "";
  for (const Schedule::Deviation& deviation : schedule.deviations) {
    text += separator + std::to_string(deviation.step);
    if (deviation.choice) text += "." + std::to_string(*deviation.choice);
    text += "=" + std::to_string(deviation.value);
    separator = ",";
  }
  return text;
}

std::vector<Transition> parse_faults(std::string_view text, size_t workers) {
  const auto wrong = [workers](std::string_view what) {
    return std::invalid_argument("'" + std::string(what) + "' is no fault of these " +
                                 std::to_string(workers) +
                                 " workers; write none, cut:0,1, crash:2 or give_up:0,1");
  };
  if (text == "none") return {};
  if (text.empty()) throw wrong(text);
  std::vector<Transition> faults = faults_of(text, workers, wrong);
  std::sort(faults.begin(), faults.end());
  const auto twice = std::adjacent_find(faults.begin(), faults.end());
  if (twice != faults.end())
    throw std::invalid_argument("'" + to_string(*twice) + "' is there twice");
  return faults;
}

Schedule parse_schedule(std::string_view text, size_t workers) {
  const auto wrong = [text](std::string_view what) {
    return std::invalid_argument("'" + std::string(text) + "' is no schedule: '" +
                                 std::string(what) + "'; write it like cut:0,1@3=1,7.0=2");
  };
  Schedule schedule;
  const size_t at = text.find('@');
  if (at == std::string_view::npos) throw wrong("there is no @");
  schedule.faults = faults_of(text.substr(0, at), workers, wrong);
  for (const std::string_view part : split(text.substr(at + 1), ',')) {
    const auto deviation = parse_deviation(part);
    if (!deviation) throw wrong(part);
    schedule.deviations.push_back(*deviation);
  }
  return schedule;
}

size_t GivenSchedule::pick(const std::vector<Candidate>& enabled) {
  ++step_;
  choice_ = 0;
  const uint64_t place = take(std::nullopt);
  return place < enabled.size() ? place : kStop;
}

uint64_t GivenSchedule::choose(uint64_t n) { return take(choice_++) % n; }

uint64_t GivenSchedule::take(std::optional<size_t> choice) {
  if (next_ == deviations_.size()) return 0;
  const Schedule::Deviation& next = deviations_[next_];
  if (next.step + 1 != step_ || next.choice != choice) return 0;
  ++next_;
  return next.value;
}

}  // namespace rehearsal::sim::explore
