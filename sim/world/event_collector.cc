#include "sim/world/event_collector.h"

#include <array>
#include <cstring>

#include "core/fibers/inspection.h"
#include "sim/explain/history_recorder.h"
#include "sim/world/event_lines.h"
#include "sim/world/machines.h"

namespace rehearsal::sim {
namespace {

uint64_t word_at(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

constexpr uint64_t pair(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

// Up to 7 letters, which fit into a word as they are: there are as many of them as its last byte
// says.
uint64_t short_word_of(std::string_view text) {
  uint64_t word = uint64_t{text.size()} << 56;
  for (size_t i = 0; i < text.size(); ++i)
    word |= uint64_t{static_cast<uint8_t>(text[i])} << (8 * i);
  return word;
}

// A word for an event's text. Most of them are names of at most 16 letters, which two words cover.
uint64_t word_of(std::string_view text) {
  if (text.size() < 8) return short_word_of(text);
  if (text.size() > 16) return hash_bytes(text.data(), text.size());
  const uint64_t first = word_at(text.data()) ^ 0x9e3779b97f4a7c15ULL;
  const uint64_t last = word_at(text.data() + text.size() - 8) ^ 0xd1b54a32d192ed03ULL;
  const auto product = static_cast<unsigned __int128>(first) * last;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ text.size();
}

}  // namespace

void EventCollector::on_event(const Event& event, LifeId life, Incarnation incarnation,
                              uint64_t tensors) {
  fold(event, incarnation, tensors);
  if (event.kind == EventKind::call_executed) ++calls_;
  const std::vector<Oracle*>& watchers = watchers_[static_cast<size_t>(event.kind)];
  if (watchers.empty() && traces_.empty() && lines_ == nullptr && history_ == nullptr) return;
  Observation seen{event, life, incarnation, queue_.now(), tensors};
  if (machines_ != nullptr) seen.busy_time = machines_->busy_time(life.worker);
  seen.shown = shown_to(life.worker);
  if (history_ != nullptr) history_->on_event(seen);
  for (Oracle* oracle : watchers) oracle->on_event(seen, findings_);
  if (history_ != nullptr && findings_.first()) history_->on_finding(findings_.first()->oracle);
  if (!traces_.empty()) {
    Event timed = event;
    timed.when = seen.when;
    for (Trace* trace : traces_) trace->on_event(timed);
  }
  if (lines_ != nullptr) lines_->write(seen, fingerprint_.value());
}

Instant EventCollector::shown_to(WorkerId worker) const {
  const Instant now = queue_.now();
  return clocks_ == nullptr || clocks_->empty() ? now : (*clocks_)[worker.value].local(now);
}

void EventCollector::add(Oracle& oracle) {
  const EventKinds watched = oracle.watched();
  for (size_t kind = 0; kind < kEventKinds; ++kind)
    if (watched.has(static_cast<EventKind>(kind))) watchers_[kind].push_back(&oracle);
}

void EventCollector::fold(const Event& event, Incarnation incarnation, uint64_t tensors) {
  fingerprint_.fold(std::array<uint64_t, 12>{
      static_cast<uint64_t>(queue_.now().time_since_epoch().count()), decisions_.draws(),
      incarnation.value, event.id.incarnation.value, event.id.path.high, event.id.path.low,
      event.id.ordinal, event.number, event.digest ^ tensors, word_of(event.text),
      pair(static_cast<uint32_t>(event.kind), event.message_type),
      pair(event.worker.value, event.peer.value)});
  fibers::inspect_event(fingerprint_.events());
}

void EventCollector::note(std::string_view what, LifeId life) {
  const Event event{
      .kind = EventKind::mark, .worker = life.worker, .number = life.life, .text = what};
  fold(event, {}, 0);
  if (history_ != nullptr) history_->on_note(what, life);
  if (lines_ != nullptr) lines_->write({event, life, {}, queue_.now()}, fingerprint_.value());
}

}  // namespace rehearsal::sim
