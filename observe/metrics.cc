#include "observe/metrics.h"

#include <algorithm>
#include <utility>

#include "core/wire/message.h"

namespace rehearsal::observe {
namespace {

const uint32_t kCallType = Message{Call{}}.type();

void count_end(CallCounts& counts, uint64_t outcome) {
  ++counts.ended;
  if (outcome > 0) ++counts.errors[static_cast<ErrorKind>(outcome - 1)];
}

}  // namespace

Metrics::Metrics(std::vector<std::string> names, WorkerId self) : self_(self) {
  counts_.worker = names.at(self.value);
  counts_.names = std::move(names);
}

void Metrics::on_event(const Event& event) {
  if (event.worker != self_) return;
  switch (event.kind) {
    case EventKind::api_call:
      return on_made(event);
    case EventKind::call_completed:
      return on_completed(event);
    case EventKind::call_executed:
      return on_started(event);
    case EventKind::call_served:
      return on_served(event);
    case EventKind::frame:
      if (event.message_type == kCallType) arrived_.try_emplace(event.id, Arrived{event.when});
      return on_traffic(event);
    case EventKind::frame_sent:
    case EventKind::frame_resent:
    case EventKind::frame_dropped:
    case EventKind::peer_up:
    case EventKind::peer_lost:
    case EventKind::peer_fenced:
      return on_traffic(event);
    case EventKind::note:
      return on_note(event);
    case EventKind::context_opened:
    case EventKind::context_released:
    case EventKind::pass_started:
    case EventKind::pass_ended:
      return on_autograd(event);
    case EventKind::node_stopped:
      made_.clear();
      arrived_.clear();
      counts_.contexts = counts_.passes = 0;
      return;
    default:
      return;
  }
}

void Metrics::on_note(const Event& event) {
  if (event.number == 0) return;
  std::map<std::string, std::string>& notes = counts_.notes;
  const std::string name(event.text);
  if (notes.size() < kNotesMax || notes.contains(name)) notes[name] = event.value;
}

void Metrics::on_autograd(const Event& event) {
  switch (event.kind) {
    case EventKind::context_opened:
      ++counts_.contexts;
      return;
    case EventKind::context_released:
      if (counts_.contexts > 0) --counts_.contexts;
      return;
    case EventKind::pass_started:
      ++counts_.passes_begun;
      ++counts_.passes;
      return;
    default:
      if (counts_.passes > 0) --counts_.passes;
      if (!event.text.empty()) ++counts_.passes_failed;
  }
}

void Metrics::on_traffic(const Event& event) {
  PeerCounts& peer = counts_.peers[event.peer.value];
  Sent& sent = sent_[event.peer.value];
  switch (event.kind) {
    case EventKind::frame:
      ++peer.messages_received;
      peer.bytes_received += event.bytes;
      return;
    case EventKind::frame_sent:
      ++peer.messages_sent;
      peer.bytes_sent += event.bytes;
      sent.latest = event.number;
      return;
    case EventKind::frame_resent:
      if (event.number > sent.left) return;
      ++peer.messages_resent;
      peer.bytes_resent += event.bytes;
      return;
    case EventKind::frame_dropped:
      ++peer.frames_dropped;
      return;
    case EventKind::peer_up:
      ++peer.links_up;
      sent.link_lost = false;
      return;
    case EventKind::peer_lost:
      ++peer.links_lost;
      if (!std::exchange(sent.link_lost, true)) sent.left = sent.latest;
      return;
    default:
      ++peer.fenced;
      sent = {};
  }
}

void Metrics::on_made(const Event& event) {
  const std::string function(event.text);
  const auto form = static_cast<CallForm>(event.digest);
  CallCounts& counts = counts_.made[function][event.peer.value];
  ++counts.begun;
  ++counts.by_form[form];
  // Nobody is told when a reference has its value.
  if (form == CallForm::remote) return;
  made_.insert_or_assign(event.id, Made{event.when, function});
}

void Metrics::on_completed(const Event& event) {
  const auto found = made_.find(event.id);
  if (found == made_.end()) return;
  const auto& [when, function] = found->second;
  count_end(counts_.made[function][event.peer.value], event.number);
  counts_.made_times[function].total.add(event.when - when);
  made_.erase(found);
}

void Metrics::on_started(const Event& event) {
  const auto found = arrived_.find(event.id);
  if (found == arrived_.end()) return;
  found->second.started = true;
  const std::string function(event.text);
  ++counts_.served[function][event.peer.value].begun;
  counts_.served_times[function].waiting.add(event.when - found->second.when);
}

void Metrics::on_served(const Event& event) {
  const auto found = arrived_.find(event.id);
  if (found == arrived_.end()) return;
  const std::string function(event.text);
  count_end(counts_.served[function][event.peer.value], event.number);
  counts_.served_times[function].total.add(event.when - found->second.when);
  arrived_.erase(found);
}

MetricsSnapshot Metrics::snapshot(Instant now) const {
  MetricsSnapshot made = counts_;
  made.unanswered = made_.size();
  for (const auto& [id, call] : arrived_) {
    if (call.started) {
      ++made.running;
    } else {
      ++made.waiting;
      made.oldest_waiting = std::max(made.oldest_waiting, now - call.when);
    }
  }
  return made;
}

}  // namespace rehearsal::observe
