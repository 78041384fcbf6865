#include "sim/explain/history_recorder.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "core/wire/protobuf_codec.h"
#include "sim/explain/message_text.h"

namespace rehearsal::sim {
namespace {

using Table = std::pair<const char*, uint64_t NodeCensus::*>;
constexpr std::array<Table, 12> kTables = {{
    {"pending calls", &NodeCensus::pending_calls},
    {"executions", &NodeCensus::executions},
    {"owners", &NodeCensus::owners},
    {"owner forks", &NodeCensus::owner_forks},
    {"owner handles", &NodeCensus::owner_handles},
    {"users", &NodeCensus::users},
    {"pending users", &NodeCensus::pending_users},
    {"pending children", &NodeCensus::pending_children},
    {"contexts", &NodeCensus::contexts},
    {"passes", &NodeCensus::passes},
    {"unacknowledged", &NodeCensus::unacknowledged},
    {"timers", &NodeCensus::timers},
}};

// The tables that hold anything.
std::string text_of(const NodeCensus& census) {
  std::string text;
  for (const auto& [name, count] : kTables) {
    if (census.*count == 0) continue;
    if (!text.empty()) text += ", ";
    text += name + (" " + std::to_string(census.*count));
  }
  return text;
}

EntryKind kind_of_note(std::string_view what) {
  if (what == "crash") return EntryKind::crash;
  if (what == "restart") return EntryKind::restart;
  REHEARSAL_CHECK(what == "calm", what);
  return EntryKind::calm;
}

}  // namespace

HistoryRecorder::HistoryRecorder(HistorySink& sink, const EventQueue& queue, const Program& program)
    : sink_(sink),
      queue_(queue),
      program_(program),
      names_(program.names()),
      codec_(make_protobuf_codec()),
      tables_(names_.size()) {
  sink_.begin(names_);
}

void HistoryRecorder::add(Entry entry) {
  entry.when = queue_.now();
  sink_.add(std::move(entry));
}

void HistoryRecorder::on_event(const Observation& seen) {
  const Event& event = seen.event;
  // The network tells of it, too, and more.
  if (event.kind == EventKind::frame_resent) return;
  add({.event = event.kind,
       .worker = seen.life.worker.value,
       .life = seen.life.life,
       .peer = event.peer.value,
       .id = event.id == CausalId{} ? std::string() : to_string(event.id),
       .message_type = event.message_type,
       .number = event.number,
       .text = std::string(event.text)});
}

void HistoryRecorder::on_note(std::string_view what, LifeId life) {
  add({.kind = kind_of_note(what), .worker = life.worker.value, .life = life.life});
}

void HistoryRecorder::on_decision(const Override& given) {
  add({.kind = EntryKind::decision, .text = to_string(given)});
}

void HistoryRecorder::on_finding(std::string_view oracle) {
  if (std::exchange(failed_, true)) return;
  add({.kind = EntryKind::failed, .text = std::string(oracle)});
}

void HistoryRecorder::after_step(LifeId life, const NodeCensus& census) {
  std::string text = text_of(census);
  std::string& last = tables_.at(life.worker.value);
  if (text == last) return;
  last = text;
  add({.kind = EntryKind::tables,
       .worker = life.worker.value,
       .life = life.life,
       .text = std::move(text)});
}

void HistoryRecorder::on_sent(LifeId from, LifeId to, const Frame& frame, uint64_t attempt) {
  if (frame.header.kind != FrameKind::message) return;
  const Result<Message> message = codec_->decode(*frame.body);
  add({.kind = EntryKind::sent,
       .worker = from.worker.value,
       .life = from.life,
       .peer = to.worker.value,
       .peer_life = to.life,
       .message_type = message.ok() ? message.value().type() : 0,
       .number = frame.header.sequence,
       .attempt = attempt,
       .bytes = frame.bytes(),
       .detail = message.ok() ? describe(message.value(), program_.registry()) : std::string()});
}

void HistoryRecorder::on_arrived(LifeId from, LifeId to, const Frame& frame) {
  if (frame.header.kind != FrameKind::message) return;
  add({.kind = EntryKind::arrived,
       .worker = to.worker.value,
       .life = to.life,
       .peer = from.worker.value,
       .peer_life = from.life,
       .number = frame.header.sequence});
}

void HistoryRecorder::on_broken(LifeId one, LifeId other, std::string_view why) {
  add({.kind = EntryKind::broken,
       .worker = one.worker.value,
       .life = one.life,
       .peer = other.worker.value,
       .peer_life = other.life,
       .text = std::string(why)});
}

void HistoryRecorder::on_partition(const net_fake::Partition& partition) {
  using Shape = net_fake::Partition::Shape;
  std::map<uint32_t, std::string> places;  // the names of each
  for (uint32_t worker = 0; worker < partition.places.size(); ++worker) {
    if (partition.places[worker] == net_fake::Partition::kNowhere) continue;
    std::string& names = places[partition.places[worker]];
    names += (names.empty() ? "" : ", ") + names_.at(worker);
  }
  std::string text;
  const char* const between = partition.shape == Shape::one_way ? " cannot reach " : " and ";
  for (const auto& [place, names] : places) text += (text.empty() ? "" : between) + names;
  if (partition.shape == Shape::sides) text += " are cut off from each other";
  if (partition.shape == Shape::ring) text += " reach their neighbours only";
  if (partition.effect.kind == net_fake::Effect::Kind::jam) text += ", for a while: a jam";
  if (partition.effect.kind == net_fake::Effect::Kind::slow) text += " in time: all is late";
  add({.kind = EntryKind::partition, .text = std::move(text)});
}

void HistoryRecorder::on_healed() { add({.kind = EntryKind::healed}); }

}  // namespace rehearsal::sim
