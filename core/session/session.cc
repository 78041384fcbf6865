#include "core/session/session.h"

#include <algorithm>

namespace rehearsal {
namespace {

// The payload of a message that may have to wait for room.
const Payload* payload_of(const Message& message) {
  if (const Call* call = std::get_if<Call>(&message.content)) return &call->arguments;
  if (const Item* item = std::get_if<Item>(&message.content)) return &item->value;
  return nullptr;
}

// The lane that its payload will need, about; everything else that may wait is small.
Lane lane_of(const Message& message) {
  const Payload* payload = payload_of(message);
  if (payload == nullptr) return Lane::small;
  const uint64_t bytes = payload->values.size() + sent_bytes(payload->sent);
  return bytes <= kSmallFrameBytes ? Lane::small : Lane::large;
}

// The references that it passes on.
const std::vector<Fork>* forks_of(const Message& message) {
  if (const Call* call = std::get_if<Call>(&message.content)) return &call->arguments.forks;
  if (const Response* response = std::get_if<Response>(&message.content))
    return &response->value.forks;
  if (const Item* item = std::get_if<Item>(&message.content)) return &item->value.forks;
  if (const End* end = std::get_if<End>(&message.content)) return &end->value.forks;
  return nullptr;
}

// How long an acknowledgement waits for a data frame to ride on.
constexpr Duration kAcknowledgementDelay = std::chrono::milliseconds(5);

}  // namespace

Sessions::Sessions(SessionOptions options, NodeStrand& strand, Transport& transport, Codec& codec,
                   SessionListener& listener)
    : options_(std::move(options)),
      strand_(strand),
      transport_(transport),
      codec_(codec),
      listener_(listener),
      peers_(options_.names.size()),
      loans_(options_, strand, [this] {
        if (!stopped_) await_copies();
      }) {
  if (!options_.dynamic) return;
  for (uint32_t id = 0; id < peers_.size(); ++id)
    if (WorkerId{id} != options_.self)
      peers_[id].lost =
          Error{.kind = ErrorKind::peer_lost,
                .text = "worker '" + options_.names[id] + "' has not joined the group",
                .worker = options_.names[id]};
}

void Sessions::start() {
  const Instant now = strand_.runtime().now();
  for (uint32_t id = 0; id < peers_.size(); ++id) {
    peers_[id].heard = now;
    if (WorkerId{id} != options_.self) transport_.open(WorkerId{id});
  }
  set_tick_timer(now);
}

void Sessions::stop() {
  if (std::exchange(stopped_, true)) return;
  strand_.runtime().cancel(tick_timer_);
  if (copies_timer_) strand_.runtime().cancel(*copies_timer_);
  loans_.stop();
  for (const Peer& peer : peers_)
    if (peer.acknowledgement_due) strand_.runtime().cancel(peer.acknowledgement_timer);
}

const MaybeError& Sessions::lost(WorkerId id) const { return peer(id).lost; }

const MaybeError& Sessions::unavailable(WorkerId id) const {
  return peer(id).lost ? peer(id).lost : peer(id).leaves;
}

void Sessions::ask_nothing_new(WorkerId id, const Error& why) { peer(id).leaves = why; }

bool Sessions::joined(WorkerId id) const {
  return id == options_.self || (peer(id).incarnation.value != 0 && !peer(id).lost);
}

bool Sessions::linked(WorkerId id) const {
  return id == options_.self || (joined(id) && peer(id).link.up);
}

Incarnation Sessions::incarnation(WorkerId id) const {
  return id == options_.self ? options_.incarnation : peer(id).incarnation;
}

std::vector<Incarnation> Sessions::fenced() const { return {fenced_.begin(), fenced_.end()}; }

std::vector<WorkerId> Sessions::lost_workers() const {
  std::vector<WorkerId> workers;
  for (uint32_t id = 0; id < peers_.size(); ++id)
    if (peers_[id].lost) workers.push_back(WorkerId{id});
  return workers;
}

bool Sessions::all_received(WorkerId id) const {
  return id == options_.self || peer(id).received.contiguous();
}

uint64_t Sessions::highest_received(WorkerId id) const {
  if (id == options_.self) return 0;
  const std::array<uint64_t, 2>& last = peer(id).last_received;
  return std::max(last[0], last[1]);
}

void Sessions::begin_to_serve(WorkerId id) {
  peer(id).serves = true;
  admit_queued(id);
  admit_to_all();
}

void Sessions::expect_silence(WorkerId id) { peer(id).may_be_silent = true; }

// ---- sending ----------------------------------------------------------------

// The bytes on their way hold up large messages only: they leave a small one's lane free.
bool Sessions::has_room(const Peer& to, Lane lane) const {
  if (options_.mutants.on(Mutant::no_back_pressure)) return true;
  return to.unacked.size() < options_.window_frames &&
         (lane == Lane::small || to.unacked_bytes < options_.window_bytes);
}

// We have made the reference, and its owner may not have met us: if we were lost, it would never
// know that the value will not come.
bool Sessions::is_unknown_to_its_owner(const Fork& fork) const {
  const WorkerId owner = fork.rref.owner;
  if (owner.value >= peers_.size()) return false;  // Only a worker that lies makes one.
  return fork.rref.causal.incarnation == options_.incarnation && owner != options_.self &&
         fork.rref.owner_incarnation == peer(owner).incarnation && !peer(owner).lost &&
         !peer(owner).serves;
}

// Nothing goes to a peer that has not been met, and what does not make the group not before it has
// met all others, nor before the owners of the references in it have met us.
bool Sessions::may_send(const Peer& to, const Message& message) const {
  if (to.incarnation.value == 0 || !is_ready(message)) return false;
  if (options_.mutants.on(Mutant::serves_before_met)) return true;
  if (!to.serves) return is_of_group(message);
  const std::vector<Fork>* forks = forks_of(message);
  return forks == nullptr || std::none_of(forks->begin(), forks->end(), [this](const Fork& fork) {
           return is_unknown_to_its_owner(fork);
         });
}

bool Sessions::is_behind(const Message& message, std::list<Queued>::const_iterator first,
                         std::list<Queued>::const_iterator last) const {
  const Call* const call = std::get_if<Call>(&message.content);
  if (call == nullptr || !call->order || options_.mutants.on(Mutant::ordered_call_overtakes_copies))
    return false;
  return std::any_of(first, last, [call](const Queued& queued) {
    const Call* const other = std::get_if<Call>(&queued.message.content);
    return other != nullptr && other->order == call->order;
  });
}

void Sessions::send(WorkerId to, Message message, SendOptions options) {
  if (stopped_) return;
  const bool is_to_self = to == options_.self;
  const bool is_copied_later = is_to_self ? is_being_copied(message) : !is_ready(message);
  if (is_copied_later) await_copies();
  if (is_to_self) {
    if (!is_copied_later && !is_behind(message, copied_to_self_.begin(), copied_to_self_.end()))
      return send_to_self(message, std::move(options));
    return copied_to_self_.push_back({std::move(message), std::move(options)});
  }
  Peer& receiver = peer(to);
  if (receiver.lost) {
    drop_frame(to, "its receiver is lost");
    return drop_unsent({std::move(message), std::move(options)});
  }
  const Lane lane = options.on_large_lane ? Lane::large : lane_of(message);
  std::list<Queued>& queued = receiver.queued[static_cast<size_t>(lane)];
  const bool taken = may_send(receiver, message);
  const bool others_wait_for_room = !queued.empty() && may_send(receiver, queued.front().message);
  const bool must_wait =
      !taken || is_behind(message, queued.begin(), queued.end()) ||
      (options.waits_for_room && (others_wait_for_room || !has_room(receiver, lane)));
  if (!must_wait) return transmit_or_instead(to, {std::move(message), std::move(options)});
  some_may_not_be_sent_ |= !taken;
  if (taken)
    strand_.mark("a message waits for room");
  else if (is_copied_later)
    strand_.mark("a message waits until devices have copied its tensors");
  else
    strand_.mark("a message waits until its receiver serves");
  queued.push_back({std::move(message), std::move(options)});
}

void Sessions::send_to_self(const Message& message, SendOptions&& options) {
  ++to_self_;
  auto body = codec_.encode(message);
  note_loans(options_.self, message);
  strand_.trace().on_event({.kind = EventKind::frame_sent,
                            .worker = options_.self,
                            .peer = options_.self,
                            .id = causal_id_of(message),
                            .message_type = message.type(),
                            .bytes = body->bytes()});
  strand_.post([this, body = std::move(body), options = std::move(options)]() mutable {
    if (stopped_) return;
    Result<Message> decoded = codec_.decode(*body);
    REHEARSAL_CHECK(decoded.ok(), decoded.error().text);
    strand_.trace().on_event({.kind = EventKind::frame,
                              .worker = options_.self,
                              .peer = options_.self,
                              .id = causal_id_of(decoded.value()),
                              .message_type = decoded.value().type(),
                              .digest = hash_bytes(body->envelope.data(), body->envelope.size()),
                              .bytes = body->bytes()});
    if (options.on_acknowledged) options.on_acknowledged();
    loans_.receive(options_.self, decoded.value());
    listener_.on_message(options_.self, std::move(decoded).value());
    --to_self_;
    progressed();
  });
}

void Sessions::transmit_new(WorkerId id, const Message& message, SendOptions&& options) {
  Peer& to = peer(id);
  Unacked unacked;
  unacked.sequence = to.next_sequence++;
  unacked.of_shutdown = options.of_shutdown;
  unacked.of_group = is_of_group(message);
  if (unacked.of_group) ++to.unacked_of_group;
  if (unacked.of_shutdown) ++to.unacked_of_shutdown;
  count_answer(id, unacked, message);
  const std::shared_ptr<FrameBody> body = codec_.encode(message);
  if (has_copies(message)) leave_while_copied(id, message, unacked.sequence, *body);
  unacked.body = body;
  note_loans(id, message);
  unacked.carried = std::move(options.carried);
  unacked.on_acknowledged = std::move(options.on_acknowledged);
  const uint64_t bytes = unacked.body->bytes();
  unacked.on_large_lane = options.on_large_lane;
  unacked.lane = unacked.on_large_lane ? Lane::large : lane_of_bytes(bytes);
  strand_.trace().on_event({.kind = EventKind::frame_sent,
                            .worker = options_.self,
                            .peer = id,
                            .id = causal_id_of(message),
                            .message_type = message.type(),
                            .number = unacked.sequence,
                            .bytes = bytes});
  to.unacked_bytes += bytes;
  to.unacked.push(std::move(unacked));
  if (!to.link.up) return;
  if (to.link.paced)
    send_more(id);
  else
    transmit(id, to.unacked.back());
}

FrameHeader Sessions::header_to(Peer& to, FrameKind kind, uint64_t sequence) {
  to.spoke = strand_.runtime().now();
  to.acknowledged_to_peer = to.received.base() - 1;
  to.unanswered_frames = 0;
  return {.kind = kind,
          .source = options_.incarnation,
          .destination = to.incarnation,
          .sequence = sequence,
          .acknowledged = to.acknowledged_to_peer,
          .received = to.last_received};
}

void Sessions::transmit(WorkerId id, const Unacked& unacked) {
  Peer& to = peer(id);
  to.link.largest_sent = std::max(to.link.largest_sent, unacked.body->bytes());
  FrameHeader header = header_to(to, FrameKind::message, unacked.sequence);
  header.on_large_lane = unacked.on_large_lane;
  transport_.send(id, {.header = header, .body = unacked.body});
}

void Sessions::transmit_bare(WorkerId id, FrameKind kind) {
  transport_.send(id, {.header = header_to(peer(id), kind, 0), .body = nullptr});
}

void Sessions::admit_queued(WorkerId id) {
  Peer& to = peer(id);
  for (const Lane lane : {Lane::small, Lane::large}) {
    std::list<Queued>& waiting = to.queued[static_cast<size_t>(lane)];
    for (auto next = waiting.begin(); next != waiting.end();) {
      if (!may_send(to, next->message) || is_behind(next->message, waiting.begin(), next)) {
        some_may_not_be_sent_ = true;
        ++next;
        continue;
      }
      if (next->options.waits_for_room && !has_room(to, lane)) break;
      Queued queued = std::move(*next);
      next = waiting.erase(next);
      transmit_or_instead(id, std::move(queued));
    }
  }
}

void Sessions::admit_to_all() {
  if (!std::exchange(some_may_not_be_sent_, false)) return;
  for (uint32_t id = 0; id < peers_.size(); ++id) admit_queued(WorkerId{id});
}

bool Sessions::withdraw(WorkerId id, const CallId& call) {
  if (id == options_.self) return false;
  for (std::list<Queued>& queued : peer(id).queued) {
    const auto found = std::find_if(queued.begin(), queued.end(), [&](const Queued& waiting) {
      const Call* content = std::get_if<Call>(&waiting.message.content);
      return content != nullptr && content->id == call;
    });
    if (found == queued.end()) continue;
    Queued withdrawn = std::move(*found);
    queued.erase(found);
    drop_unsent(std::move(withdrawn));
    return true;
  }
  return false;
}

// Its tensors die off the strand.
void Sessions::drop_unsent(Queued&& message) {
  if (message.options.on_withdrawn) message.options.on_withdrawn();
  if (message.options.carried) strand_.release_later(std::make_shared<Queued>(std::move(message)));
}

void Sessions::on_drained(WorkerId id) {
  strand_.trace().on_event({.kind = EventKind::drained, .worker = options_.self, .peer = id});
  admit_queued(id);
}

// ---- receiving --------------------------------------------------------------

void Sessions::drop_frame(WorkerId id, std::string_view why) {
  strand_.trace().on_event(
      {.kind = EventKind::frame_dropped, .worker = options_.self, .peer = id, .text = why});
}

void Sessions::on_frame(WorkerId id, Frame frame) {
  if (stopped_) return;
  Peer& from = peer(id);
  const FrameHeader& header = frame.header;
  const bool for_us = header.destination == options_.incarnation ||
                      options_.mutants.on(Mutant::destination_unchecked);
  if (header.source != from.incarnation || !for_us)
    return drop_frame(id, "it is of another incarnation");
  if (from.lost) return drop_frame(id, "its sender is fenced");
  from.heard = strand_.runtime().now();
  from.suspected = false;
  if (header.kind != FrameKind::message)
    strand_.trace().on_event({.kind = EventKind::ack_frame, .worker = options_.self, .peer = id});
  const bool has_body = frame.body != nullptr;
  if (!is_possible(from, header.acknowledged, header.received) ||
      has_body != (header.kind == FrameKind::message))
    return fence(id,
                 {.kind = ErrorKind::protocol,
                  .text = "worker '" + options_.names[id.value] + "' sent a frame that cannot be",
                  .worker = options_.names[id.value]});
  take_position(from, header.received);
  take_acknowledgement(id, header.acknowledged);
  if (from.link.paced) send_more(id);
  if (has_body) {
    receive_message(id, frame);
  } else if (header.kind == FrameKind::fenced) {
    fence(id, {.kind = ErrorKind::fenced,
               .text = "fenced by '" + options_.names[id.value] + "'",
               .worker = options_.names[id.value]});
  }
}

// Whether the peer can have received so much: no more than was sent.
bool Sessions::is_possible(const Peer& from, uint64_t acknowledged,
                           const std::array<uint64_t, 2>& received) {
  return std::max({acknowledged, received[0], received[1]}) < from.next_sequence;
}

void Sessions::take_acknowledgement(WorkerId id, uint64_t acknowledged) {
  Peer& from = peer(id);
  bool any = false;
  while (!from.unacked.empty() && from.unacked.front().sequence <= acknowledged) {
    Unacked unacked = from.unacked.pop();
    from.unacked_bytes -= unacked.body->bytes();
    if (unacked.of_shutdown) --from.unacked_of_shutdown;
    if (unacked.of_group) --from.unacked_of_group;
    if (unacked.is_answer) --from.unread_answers;
    note_arrival(from, unacked);
    any = true;
    if (unacked.on_acknowledged) unacked.on_acknowledged();
    if (unacked.carried)
      strand_.release_later(std::shared_ptr<CarriedTensors>(std::move(unacked.carried)));
  }
  if (!any) return;
  note_progress(from);
  if (on_read_) on_read_(id);
  if (from.queued_count() > 0 && !options_.mutants.on(Mutant::room_wakes_nobody)) admit_queued(id);
  if (!options_.mutants.on(Mutant::acknowledgement_wakes_no_shutdown)) progressed();
}

void Sessions::receive_message(WorkerId id, const Frame& frame) {
  Peer& from = peer(id);
  const bool fresh = from.received.insert(frame.header.sequence);
  if (options_.mutants.on(Mutant::deduplication_slides) && !from.received.contiguous())
    from.received = IntervalSet(frame.header.sequence + 1);
  const Lane lane = lane_of(frame);
  uint64_t& last = from.last_received[static_cast<size_t>(lane)];
  last = std::max(last, frame.header.sequence);
  if (fresh) note_progress(from);
  gaps_peak_ = std::max(gaps_peak_, from.received.gaps());
  if (from.received.gaps() > options_.limits.gaps)
    return accuse(id, {"Frame.sequence", "leaves out more frames than can be on their way"});
  owe_acknowledgement(id, lane);
  if (!fresh && !options_.mutants.on(Mutant::no_deduplication)) {
    strand_.mark("a frame arrived twice");
    return drop_frame(id, "it arrived before");
  }
  Result<Message> decoded = codec_.decode(*frame.body);
  if (!decoded.ok()) {
    Error error = decoded.error();
    error.worker = options_.names[id.value];
    return fence(id, error);
  }
  const std::string& envelope = frame.body->envelope;
  strand_.trace().on_event({.kind = EventKind::frame,
                            .worker = options_.self,
                            .peer = id,
                            .id = causal_id_of(decoded.value()),
                            .message_type = decoded.value().type(),
                            .number = frame.header.sequence,
                            .digest = hash_bytes(envelope.data(), envelope.size()),
                            .bytes = frame.body->bytes()});
  loans_.receive(id, decoded.value());
  listener_.on_message(id, std::move(decoded).value());
}

void Sessions::owe_acknowledgement(WorkerId id, Lane lane) {
  Peer& from = peer(id);
  ++from.unanswered_frames;
  ++from.link.arrived_messages;
  // The sender of a link that was made again waits for it, and the link may not live for long.
  const bool soon = from.link.paced && from.link.arrived_messages <= from.link.told_soon &&
                    !options_.mutants.on(Mutant::position_not_told);
  const bool at_once = lane == Lane::large || from.link.arrived_messages == 1;
  const uint64_t limit = !soon ? options_.window_frames / 2 : at_once ? 1 : kFewMessages;
  if (from.unanswered_frames >= limit) return transmit_bare(id, FrameKind::ack);
  if (from.acknowledgement_due) return;
  from.acknowledgement_due = true;
  const Instant now = strand_.runtime().now();
  from.acknowledgement_timer =
      strand_.runtime().call_at(acknowledges_at_once_ ? now : now + kAcknowledgementDelay,
                                [this, id, incarnation = from.incarnation] {
                                  Peer& to = peer(id);
                                  if (stopped_ || to.incarnation != incarnation) return;
                                  if (options_.mutants.on(Mutant::acknowledgement_never_alone))
                                    return;
                                  to.acknowledgement_due = false;
                                  if (to.lost || !to.link.up) return;
                                  if (to.unanswered_frames > 0) transmit_bare(id, FrameKind::ack);
                                  progressed();
                                });
}

void Sessions::progressed() {
  if (on_progress_) on_progress_();
}

bool Sessions::all_acknowledged() const {
  if (to_self_ > 0 || !copied_to_self_.empty() || loans_.waits()) return false;
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& to) {
    return to.lost || (to.unacked.size() == to.unacked_of_shutdown && to.queued_count() == 0);
  });
}

bool Sessions::flushed() const {
  if (to_self_ > 0 || !copied_to_self_.empty() || loans_.waits()) return false;
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& to) {
    return to.lost || (to.unacked.empty() && to.queued_count() == 0 && to.unanswered_frames == 0);
  });
}

uint64_t Sessions::unacknowledged() const {
  uint64_t frames = to_self_ + copied_to_self_.size();
  for (const Peer& to : peers_) frames += to.unacked.size() + to.queued_count();
  return frames;
}

uint64_t Sessions::unacknowledged_of_group() const {
  uint64_t frames = 0;
  for (const Peer& to : peers_) frames += to.unacked_of_group;
  return frames;
}

}  // namespace rehearsal
