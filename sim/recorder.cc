#include "sim/recorder.h"

#include "sim/event_lines.h"

namespace rehearsal::sim {
namespace {

// What the fingerprint takes of an event. Every byte is set: there is no padding.
struct Record {
  int64_t when;
  uint64_t draws;
  uint64_t incarnation;
  uint64_t id_incarnation;
  uint64_t path_high;
  uint64_t path_low;
  uint64_t ordinal;
  uint64_t number;
  uint64_t digest;
  uint64_t text;
  uint32_t kind;
  uint32_t message_type;
  uint32_t worker;
  uint32_t peer;
};
static_assert(sizeof(Record) == 10 * 8 + 4 * 4);

}  // namespace

void Recorder::on_event(const Event& event, LifeId life, Incarnation incarnation) {
  fold(event, life, incarnation);
  if (event.kind == EventKind::call_executed) ++calls_;
  const Observation seen{event, life, incarnation, queue_.now()};
  for (Oracle* oracle : oracles_) oracle->on_event(seen, findings_);
  for (Trace* trace : traces_) trace->on_event(event);
  if (lines_ != nullptr) lines_->write(seen, fingerprint_.value());
}

void Recorder::fold(const Event& event, LifeId, Incarnation incarnation) {
  const Record record{.when = queue_.now().time_since_epoch().count(),
                      .draws = decisions_.draws(),
                      .incarnation = incarnation.value,
                      .id_incarnation = event.id.incarnation.value,
                      .path_high = event.id.path.high,
                      .path_low = event.id.path.low,
                      .ordinal = event.id.ordinal,
                      .number = event.number,
                      .digest = event.digest,
                      .text = hash_bytes(event.text.data(), event.text.size()),
                      .kind = static_cast<uint32_t>(event.kind),
                      .message_type = event.message_type,
                      .worker = event.worker.value,
                      .peer = event.peer.value};
  fingerprint_.fold(&record, sizeof record);
}

void Recorder::note(std::string_view what, LifeId life) {
  const Event event{
      .kind = EventKind::mark, .worker = life.worker, .number = life.life, .text = what};
  fold(event, life, {});
  if (lines_ != nullptr) lines_->write({event, life, {}, queue_.now()}, fingerprint_.value());
}

}  // namespace rehearsal::sim
