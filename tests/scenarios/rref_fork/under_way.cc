#include "tests/scenarios/rref_fork/under_way.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/wire/message.h"

namespace rehearsal::sim::explore {
namespace {

using Kind = Transition::Kind;

// The calls of the scenario that bring a reference somewhere.
bool brings_forks(std::string_view function) {
  static const std::set<std::string_view> kGivers = {"hold",      "look_inside", "take_out",
                                                     "pass_back", "hand_out",    "keep"};
  return kGivers.contains(function);
}

bool touches(const Transition& fault, uint32_t from, uint32_t to) {
  if (fault.kind == Kind::crash) return fault.first == from || fault.first == to;
  return std::minmax(fault.first, fault.second) == std::minmax(from, to);
}

void add(Pairs& pairs, Letter one, Letter other) {
  ++pairs[static_cast<size_t>(std::min(one, other))][static_cast<size_t>(std::max(one, other))];
}

}  // namespace

std::string to_string(Letter letter) {
  constexpr std::array<const char*, kLetters> kNames = {"create",      "created",     "fetch",
                                                        "forks",       "ForkRequest", "ForkConfirm",
                                                        "ChildAccept", "UserDelete"};
  return kNames[static_cast<size_t>(letter)];
}

void UnderWay::begin_run(const std::vector<Transition>& faults) {
  faults_ = faults;
  steps_.clear();
  messages_.clear();
  places_.clear();
  calls_.clear();
  requested_.clear();
  is_running_ = true;
}

size_t UnderWay::pick(const std::vector<Candidate>& enabled) {
  const size_t picked = search_.pick(enabled);
  is_running_ = picked != kStop;
  if (!is_running_) return picked;
  const size_t place = steps_.size();
  REHEARSAL_CHECK(place < kStepsMax, place);
  Step step{.transition = enabled.at(picked).transition, .until = {}};
  step.until.set(place);
  for (const size_t cause : enabled[picked].causes) step.until |= steps_[cause].until;
  for (const Step& earlier : steps_)
    if (dependent(earlier.transition, step.transition)) step.until |= earlier.until;
  steps_.push_back(step);
  return picked;
}

void UnderWay::received_from(size_t step) {
  steps_.back().until |= steps_[step].until;
  search_.received_from(step);
}

void UnderWay::on_event(const Event& event) {
  if (!is_running_) return;
  if (event.kind == EventKind::api_call) return on_call(event);
  if (event.kind == EventKind::frame_sent && event.peer != event.worker) return on_sent(event);
  if (event.kind != EventKind::frame || event.peer == event.worker) return;
  const auto sent = places_.find({event.peer, event.worker, event.number});
  if (sent != places_.end()) messages_[sent->second].handled = steps_.size() - 1;
}

void UnderWay::on_call(const Event& event) {
  if (event.digest == static_cast<uint64_t>(CallForm::remote))
    calls_.emplace(event.id, Letter::create);
  else if (event.text == "to_here")
    calls_.emplace(event.id, Letter::fetch);
  else if (brings_forks(event.text))
    calls_.emplace(event.id, Letter::forks);
}

void UnderWay::on_sent(const Event& event) {
  const std::optional<Letter> letter = letter_of(event);
  if (!letter) return;
  REHEARSAL_CHECK(!steps_.empty(), to_string(*letter));
  if (*letter == Letter::fork_request) requested_.insert(event.id);
  places_[{event.worker, event.peer, event.number}] = messages_.size();
  messages_.push_back({.letter = *letter,
                       .from = event.worker.value,
                       .to = event.peer.value,
                       .sent = steps_.size() - 1,
                       .handled = {}});
}

std::optional<Letter> UnderWay::letter_of(const Event& sent) const {
  const std::string_view name = message_name(sent.message_type);
  if (name == "Call") {
    const auto call = calls_.find(sent.id);
    return call == calls_.end() ? std::nullopt : std::optional(call->second);
  }
  if (name == "ForkRequest") return Letter::fork_request;
  if (name == "ForkConfirm")
    return requested_.contains(sent.id) ? Letter::fork_confirm : Letter::created;
  if (name == "ChildAccept") return Letter::child_accept;
  if (name == "UserDelete") return Letter::user_delete;
  return std::nullopt;
}

void UnderWay::count() {
  const auto is_fault = [this](const Step& step) {
    return std::find(faults_.begin(), faults_.end(), step.transition) != faults_.end();
  };
  const auto fault = std::find_if(steps_.begin(), steps_.end(), is_fault);
  for (size_t i = 0; i < messages_.size(); ++i) {
    for (size_t j = i + 1; j < messages_.size(); ++j) {
      const Message& one = messages_[i];
      const Message& other = messages_[j];
      if (is_over_at(one.sent, other) || is_over_at(other.sent, one)) continue;
      if (faults_.empty()) add(together_, one.letter, other.letter);
      if (fault != steps_.end())
        count_at_fault(static_cast<size_t>(fault - steps_.begin()), one, other);
    }
  }
}

void UnderWay::count_at_fault(size_t fault, const Message& one, const Message& other) {
  const Transition& transition = steps_[fault].transition;
  if (!touches(transition, one.from, one.to) && !touches(transition, other.from, other.to)) return;
  if (is_over_at(fault, one) || is_over_at(fault, other)) return;
  Meetings& meetings = meetings_.at(transition.kind);
  const bool one_after = begins_after(fault, one);
  const bool other_after = begins_after(fault, other);
  if (!one_after && !other_after) add(meetings.at, one.letter, other.letter);
  if (one_after != other_after) add(meetings.after, one.letter, other.letter);
}

}  // namespace rehearsal::sim::explore
