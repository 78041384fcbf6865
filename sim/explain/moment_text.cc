// Moments in words.
#include <map>

#include "core/wire/message.h"
#include "sim/explain/chronicle.h"
#include "sim/places/source_places.h"
#include "sim/world/event_lines.h"

namespace rehearsal::sim {
namespace {

std::string worker_name(const Chronicle& chronicle, uint32_t worker) {
  return worker < chronicle.workers.size() ? chronicle.workers[worker] : "nobody";
}

// At most so many bytes of it, and whole letters; … says that something is missing.
std::string shortened(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes) + "…";
}

constexpr size_t kValuesShown = 80;

// "add(1, "x")", of what a call says: the function and its arguments, without what follows.
std::string call_words(const std::string& detail) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < detail.size(); ++i) {
    if (detail[i] == '"') in_text = !in_text;
    if (in_text) continue;
    if (detail[i] == '(') ++depth;
    if (detail[i] != ')' || --depth > 0) continue;
    const std::string words = detail.substr(0, i);
    return shortened(words, kValuesShown) + ")";
  }
  return detail.substr(0, detail.find('('));
}

// "Call 12 add(1, 2)", "Response 8 (3)": the number is the frame's, which is what a frame is known
// by.
std::string frame_text(const Entry& entry) {
  const std::string_view name = message_name(entry.message_type);
  std::string text(name);
  if (entry.number != 0) text += " " + std::to_string(entry.number);
  if (entry.detail.empty()) return text;
  if (name == "Call") return text + " " + call_words(entry.detail);
  if (name == "Response" || name == "Item")
    return text + " (" + shortened(entry.detail, kValuesShown) + ")";
  return text;
}

// ", training.cc:27"
std::string source_text(const Entry& entry) {
  const std::string place = short_place(entry.stack);
  return place.empty() ? place : ", " + place;
}

std::string with_id(std::string text, const Entry& entry) {
  return entry.id.empty() ? text : text + " [" + entry.id + "]";
}

std::string frame_event_text(const Chronicle& chronicle, const Entry& entry) {
  const std::string peer =
      entry.peer == entry.worker ? "itself" : worker_name(chronicle, entry.peer);
  switch (entry.event) {
    case EventKind::frame_sent:
      return with_id("sends " + frame_text(entry) + " to " + peer + source_text(entry), entry);
    case EventKind::frame:
      return with_id("takes " + frame_text(entry) + " from " + peer +
                         (entry.attempt > 0 ? ", sent again" : ""),
                     entry);
    case EventKind::frame_dropped:
      return with_id("drops " + frame_text(entry) + " from " + peer + ": " + entry.text, entry);
    case EventKind::ack_frame:
      return "hears that " + peer + " lives";
    case EventKind::peer_up:
      return "is connected to " + peer;
    case EventKind::peer_lost:
      return "loses " + peer + ": " + entry.text;
    case EventKind::drained:
      return "may send to " + peer + " again";
    default:
      return "fences " + peer + ": " + entry.text;
  }
}

const std::map<EventKind, const char*>& plain_texts() {
  static const std::map<EventKind, const char*> texts = {
      {EventKind::timer, "timer"},
      {EventKind::execution_started, "starts"},
      {EventKind::execution_parked, "waits in"},
      {EventKind::execution_resumed, "goes on with"},
      {EventKind::execution_ended, "ends"},
      {EventKind::call_executed, "executes"},
      {EventKind::call_served, "has served"},
      {EventKind::owner_created, "owns a new value"},
      {EventKind::owner_dropped, "drops its value"},
      {EventKind::fork_registered, "registers fork"},
      {EventKind::fork_deleted, "deletes fork"},
      {EventKind::fork_refused, "refuses fork"},
      {EventKind::user_created, "has a new reference"},
      {EventKind::user_deleted, "drops its reference"},
      {EventKind::context_opened, "opens context"},
      {EventKind::context_released, "releases context"},
      {EventKind::pass_started, "starts a backward pass"},
      {EventKind::pass_ended, "ends a backward pass"},
      {EventKind::optimizer_stepped, "steps the optimizer"},
      {EventKind::checkpoint_saved, "saves checkpoint"},
      {EventKind::checkpoint_loaded, "loads checkpoint"},
      {EventKind::reference_leaked, "was still held"},
      {EventKind::node_stopped, "stops"},
      {EventKind::destructor_failed, "could not destroy a"},
      {EventKind::mark, "note"},
  };
  return texts;
}

// Whether the text that follows is a sentence of its own.
bool tells_why(EventKind event) {
  return event == EventKind::pass_ended || event == EventKind::reference_leaked ||
         event == EventKind::node_stopped || event == EventKind::mark;
}

// "calls add(1, 2) on ps, training.cc:40"
std::string made_text(const Chronicle& chronicle, const Entry& entry) {
  std::string text = "calls " + (entry.detail.empty() ? entry.text : call_words(entry.detail));
  if (entry.peer != kNoWorker)
    text += " on " + (entry.peer == entry.worker ? "itself" : worker_name(chronicle, entry.peer));
  return with_id(text + source_text(entry), entry);
}

std::string event_text(const Chronicle& chronicle, const Entry& entry) {
  if (entry.event == EventKind::api_call) return made_text(chronicle, entry);
  if (entry.event == EventKind::call_completed)
    return with_id(entry.number == 0 ? "has the result of its call" : "sees its call fail", entry);
  if (entry.event == EventKind::note) return "notes " + entry.text + " = " + entry.detail;
  const auto plain = plain_texts().find(entry.event);
  if (plain == plain_texts().end()) return frame_event_text(chronicle, entry);
  std::string text = plain->second;
  if (!entry.text.empty()) text += (tells_why(entry.event) ? ": " : " ") + entry.text;
  return with_id(std::move(text), entry);
}

std::string_view name_of(StreamNote::Step step) {
  switch (step) {
    case StreamNote::Step::given:
      return "device_given";
    case StreamNote::Step::done:
      return "device_done";
    case StreamNote::Step::went_on:
      return "device_went_on";
    case StreamNote::Step::awaited:
      return "device_awaited";
  }
  return "?";
}

// "gives aten::add (operation 12) to stream 1 of sim:0, training.cc:27"
std::string device_text(const Entry& entry) {
  const std::string stream = stream_name(*entry.stream);
  const std::string operation = entry.text + " (operation " + std::to_string(entry.number) + ")";
  switch (entry.stream->step) {
    case StreamNote::Step::given:
      return with_id("gives " + operation + " to " + stream + source_text(entry), entry);
    case StreamNote::Step::done:
      return stream + " has done " + operation;
    case StreamNote::Step::went_on:
      return stream + " goes on behind " + operation;
    case StreamNote::Step::awaited:
      return with_id("has waited for " + operation + " on " + stream, entry);
  }
  return {};
}

}  // namespace

std::string stream_name(const StreamNote& stream) {
  return "stream " + std::to_string(stream.stream) + " of sim:" + std::to_string(stream.device);
}

std::string_view name_of(const Moment& moment) {
  switch (moment.entry.kind) {
    case EntryKind::event:
      return name_of(moment.entry.event);
    case EntryKind::sent:
      return "frame_resent";
    case EntryKind::arrived:
      return "arrived";
    case EntryKind::broken:
      return "connection_broken";
    case EntryKind::partition:
      return "partition";
    case EntryKind::healed:
      return "partition_healed";
    case EntryKind::decision:
      return "decision";
    case EntryKind::crash:
      return "crash";
    case EntryKind::restart:
      return "restart";
    case EntryKind::calm:
      return "calm";
    case EntryKind::tables:
      return "tables";
    case EntryKind::failed:
      return "failed";
    case EntryKind::thrown:
      return "thrown";
    case EntryKind::device:
      return name_of(moment.entry.stream->step);
  }
  return "?";
}

std::string place_of(const Chronicle& chronicle, const Moment& moment) {
  const Entry& entry = moment.entry;
  if (entry.worker == kNoWorker || entry.kind == EntryKind::broken) return "the cluster";
  const std::string name = worker_name(chronicle, entry.worker);
  return entry.life == 0 ? name : name + "." + std::to_string(entry.life);
}

std::string text_of(const Chronicle& chronicle, const Moment& moment) {
  const Entry& entry = moment.entry;
  switch (entry.kind) {
    case EntryKind::event:
      return event_text(chronicle, entry);
    case EntryKind::sent:
      return with_id(
          "sends " + frame_text(entry) + " again to " + worker_name(chronicle, entry.peer), entry);
    case EntryKind::broken:
      return worker_name(chronicle, entry.worker) + " and " + worker_name(chronicle, entry.peer) +
             " lose their connection: " + entry.text;
    case EntryKind::partition:
      return "partition: " + entry.text;
    case EntryKind::healed:
      return "the partition has healed";
    case EntryKind::decision:
      return "decision " + (entry.detail.empty() ? entry.text : entry.detail);
    case EntryKind::crash:
      return "crashes";
    case EntryKind::restart:
      return "starts again";
    case EntryKind::calm:
      return "the storm is over: no more faults";
    case EntryKind::device:
      return device_text(entry);
    case EntryKind::thrown:
      return with_id("throws " + entry.text + source_text(entry), entry);
    case EntryKind::arrived:
    case EntryKind::tables:
    case EntryKind::failed:
      break;  // joined with others
  }
  return {};
}

}  // namespace rehearsal::sim
