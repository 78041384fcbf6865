#include "sim/explain/history_recorder.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/fibers/default_generator.h"
#include "core/wire/protobuf_codec.h"
#include "sim/decisions/decision_words.h"
#include "sim/explain/autograd_note.h"
#include "sim/explain/message_text.h"

namespace rehearsal::sim {
namespace {

using Table = std::pair<const char*, uint64_t NodeCensus::*>;
constexpr std::array<Table, 13> kTables = {{
    {"pending calls", &NodeCensus::pending_calls},
    {"executions", &NodeCensus::executions},
    {"owners", &NodeCensus::owners},
    {"owner forks", &NodeCensus::owner_forks},
    {"owner handles", &NodeCensus::owner_handles},
    {"users", &NodeCensus::users},
    {"pending users", &NodeCensus::pending_users},
    {"pending children", &NodeCensus::pending_children},
    {"contexts", &NodeCensus::contexts},
    {"send functions", &NodeCensus::send_functions},
    {"passes", &NodeCensus::passes},
    {"unacknowledged", &NodeCensus::unacknowledged},
    {"timers", &NodeCensus::timers},
}};

// The tables that hold anything.
std::string text_of_census(const NodeCensus& census) {
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
  return what == "calm" ? EntryKind::calm : EntryKind::event;
}

std::string readable(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : type.name();
}

// As the error that it becomes says it (core/base/user_code.h).
std::string text_of_thrown(const std::type_info& type, const std::exception* thrown) {
  if (thrown == nullptr) return readable(type);
  if (const Error* error = error_of(*thrown)) return "again: " + error->text;
  if (const auto* of_torch = dynamic_cast<const c10::Error*>(thrown))
    return std::string("c10::Error: ") + of_torch->what_without_backtrace();
  return readable(type) + ": " + thrown->what();
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
  note_execution(event);
  const bool is_call = event.kind == EventKind::api_call;
  const auto maker =
      is_call ? executions_.find({event.worker.value, event.id.path}) : executions_.end();
  const bool is_placed = is_call && !tries_.is_futile(seen.life);
  Entry told{.event = event.kind,
             .when = seen.when,
             .worker = seen.life.worker.value,
             .life = seen.life.life,
             .peer = event.peer.value,
             .id = event.id == CausalId{} ? std::string() : to_string(event.id),
             .message_type = event.message_type,
             .number = event.number,
             .text = std::string(event.text),
             .detail = std::string(event.value),
             .stack = is_placed ? places_.calling_stack() : std::string(),
             .parent = maker == executions_.end() ? std::string() : maker->second,
             .autograd = autograd_note(event)};
  for (Entry& entry : tries_.take(seen, std::move(told))) sink_.add(std::move(entry));
}

void HistoryRecorder::note_execution(const Event& event) {
  if (event.kind == EventKind::execution_started || event.kind == EventKind::call_executed)
    executions_[{event.worker.value, event.id.execution_path()}] = to_string(event.id);
}

void HistoryRecorder::on_note(std::string_view what, LifeId life) {
  Entry entry{.kind = kind_of_note(what), .worker = life.worker.value, .life = life.life};
  if (entry.kind == EntryKind::event) {
    entry.event = EventKind::mark;
    entry.text = what;
  }
  add(std::move(entry));
}

void HistoryRecorder::on_throw(const std::type_info& type, const std::exception* thrown,
                               const void*) {
  const Execution* const execution = fibers::running_execution();
  // On the strand the library throws, and catches it itself.
  if (execution == nullptr || type == typeid(NodeKilled)) return;
  if (tries_.is_futile(running_)) return;
  const bool is_from_call = thrown != nullptr && error_of(*thrown) != nullptr;
  add({.kind = EntryKind::thrown,
       .worker = running_.worker.value,
       .life = running_.life,
       .id = to_string(execution->started_by()),
       .number = is_from_call ? uint64_t{1} : uint64_t{0},
       .text = text_of_thrown(type, thrown),
       .detail = std::string(execution->label()),
       .stack = places_.calling_stack()});
}

void HistoryRecorder::on_stream(LifeId life, const device::StreamStep& step) {
  using Kind = device::StreamStep::Kind;
  static_assert(static_cast<int>(Kind::awaited) == static_cast<int>(StreamNote::Step::awaited));
  const Execution* const execution = fibers::running_execution();
  const bool by_host = step.kind == Kind::given || step.kind == Kind::awaited;
  add({.kind = EntryKind::device,
       .worker = life.worker.value,
       .life = life.life,
       .id = by_host && execution != nullptr ? to_string(execution->started_by()) : std::string(),
       .number = step.operation,
       .text = std::string(step.name),
       .stack = step.kind == Kind::given && !tries_.is_futile(life) ? places_.calling_stack()
                                                                    : std::string(),
       .stream = StreamNote{.step = static_cast<StreamNote::Step>(step.kind),
                            .device = static_cast<uint32_t>(step.device),
                            .stream = static_cast<uint64_t>(step.stream)}});
}

void HistoryRecorder::on_decision(const Override& given) {
  add({.kind = EntryKind::decision, .text = to_string(given), .detail = in_words(given, names_)});
}

void HistoryRecorder::on_finding(std::string_view oracle) {
  if (std::exchange(failed_, true)) return;
  add({.kind = EntryKind::failed, .text = std::string(oracle)});
}

void HistoryRecorder::on_finding_afterwards(std::string_view oracle) {
  if (std::exchange(failed_, true)) return;
  add({.kind = EntryKind::failed, .number = 1, .text = std::string(oracle)});
}

void HistoryRecorder::on_main_failed(LifeId life) {
  if (std::exchange(failed_, true)) return;
  add({.kind = EntryKind::failed, .worker = life.worker.value, .life = life.life, .text = "main"});
}

void HistoryRecorder::after_step(LifeId life, const NodeCensus& census) {
  std::string text = text_of_census(census);
  std::string& last = tables_.at(life.worker.value);
  if (text == last) return;
  last = text;
  add({.kind = EntryKind::tables,
       .worker = life.worker.value,
       .life = life.life,
       .text = std::move(text)});
}

std::string HistoryRecorder::text_of(const Message& message) {
  const FunctionRegistry& registry = program_.registry();
  const Function* answered = nullptr;
  if (const auto* call = std::get_if<Call>(&message.content)) {
    if (call->kind == CallKind::function && call->function < registry.functions().size())
      functions_[call->id] = &registry.functions()[call->function];
  } else if (const auto* response = std::get_if<Response>(&message.content)) {
    if (const auto known = functions_.find(response->id); known != functions_.end())
      answered = known->second;
  } else if (const auto* item = std::get_if<Item>(&message.content)) {
    if (const auto known = functions_.find(item->call); known != functions_.end())
      answered = known->second;
  }
  return describe(message, registry, answered);
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
       .detail = message.ok() ? text_of(message.value()) : std::string(),
       .autograd = message.ok() ? autograd_note(message.value()) : std::nullopt});
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
