// Sessions: how they begin with a link, and how they end.
#include "core/base/short_text.h"
#include "core/session/session.h"

namespace rehearsal {

Position Sessions::position(WorkerId id) const {
  const bool is_peer = id.value < peers_.size() && id != options_.self;
  if (!is_peer || options_.mutants.on(Mutant::position_not_told)) return {};
  const Peer& from = peer(id);
  return {.source = from.incarnation,
          .acknowledged = from.received.base() - 1,
          .received = from.last_received};
}

void Sessions::on_peer_up(const Hello& hello) {
  if (stopped_ || hello.worker.value >= peers_.size() || hello.worker == options_.self) return;
  strand_.trace().on_event({.kind = EventKind::peer_up,
                            .worker = options_.self,
                            .peer = hello.worker,
                            .number = hello.incarnation.value});
  Peer& from = peer(hello.worker);
  if (fenced_.contains(hello.incarnation)) {
    tell_fenced(hello.worker, "this incarnation is fenced");
    return;
  }
  const bool again = from.incarnation == hello.incarnation;
  if (!again) {
    if (Status fits = listener_.check_hello(hello); !fits.ok()) return refuse(hello, fits.error());
    begin_session(hello);
  } else if (options_.mutants.on(Mutant::deduplication_forgotten)) {
    from.received = IntervalSet(1);
    from.last_received = {};
  }
  const Position& told = hello.position;
  if (again && told.source == options_.incarnation &&
      !is_possible(from, told.acknowledged, told.received))
    return fence(hello.worker, {.kind = ErrorKind::protocol,
                                .text = "worker '" + options_.names[hello.worker.value] +
                                        "' has received what was never sent",
                                .worker = options_.names[hello.worker.value]});
  begin_link(hello, again);
  admit_queued(hello.worker);
  if (on_link_) on_link_(hello.worker);
}

void Sessions::refuse(const Hello& hello, const Error& why) {
  Error told = why;
  shorten(told);
  transport_.close(hello.worker, told);
  if (why.kind != ErrorKind::fenced) return listener_.on_hello_refused(hello.worker, why);
  strand_.mark("a link to an earlier life of a peer");
  peer(hello.worker).link.up = false;
  transport_.open(hello.worker);
}

void Sessions::begin_session(const Hello& hello) {
  Peer& from = peer(hello.worker);
  from.has_died = true;
  if (from.incarnation.value != 0 && !from.lost)
    end_session(hello.worker, {.kind = ErrorKind::peer_lost,
                               .text = "worker '" + options_.names[hello.worker.value] +
                                       "' was lost: it started again as a new incarnation",
                               .worker = options_.names[hello.worker.value]});
  decltype(from.queued) early;
  if (from.incarnation.value == 0) early = std::move(from.queued);
  if (from.acknowledgement_due) strand_.runtime().cancel(from.acknowledgement_timer);
  from = Peer{};
  from.queued = std::move(early);
  from.incarnation = hello.incarnation;
  from.serves = !options_.grouped;
  listener_.on_peer_joined(hello);
}

void Sessions::on_peer_lost(WorkerId id, const Error& why, bool closed_by_peer) {
  if (stopped_) return;
  strand_.trace().on_event(
      {.kind = EventKind::peer_lost, .worker = options_.self, .peer = id, .text = why.text});
  Peer& from = peer(id);
  if (std::exchange(from.link.up, false)) note_futile_link(from);
  const bool is_final = closed_by_peer || options_.mutants.on(Mutant::reset_is_final);
  if (!is_final) return;
  if (from.incarnation.value == 0) {
    if (from.lost && why.kind == ErrorKind::fenced) from.lost = why;  // It has come, and lost us.
    return listener_.on_hello_refused(id, why);
  }
  if (from.lost) return;
  Error error = why;
  if (why.kind != ErrorKind::fenced && why.kind != ErrorKind::peer_lost)
    error.kind = ErrorKind::peer_lost;
  error.worker = options_.names[id.value];
  fence(id, error);
}

void Sessions::fence(WorkerId id, const Error& why) {
  if (stopped_ || id == options_.self || peer(id).lost || peer(id).incarnation.value == 0) return;
  tell_fenced(id, "fenced by '" + options_.names[options_.self.value] + "': " + why.text);
  end_session(id, why);
}

void Sessions::accuse(WorkerId id, const Violation& violation) {
  const std::string& name = options_.names[id.value];
  fence(id, {.kind = ErrorKind::protocol,
             .text = "worker '" + name + "' broke the protocol: " + std::string(violation.field) +
                     " " + std::string(violation.why),
             .worker = name});
}

std::optional<Violation> Sessions::judge(WorkerId from, const Message& message) const {
  if (from == options_.self) return std::nullopt;
  return violation_of(message, {from, peer(from).incarnation, options_.self, options_.incarnation},
                      options_);
}

void Sessions::tell_fenced(WorkerId id, const std::string& text) {
  if (options_.mutants.on(Mutant::fenced_side_not_told)) return;
  transport_.close(id, {.kind = ErrorKind::fenced,
                        .text = short_text(text),
                        .worker = options_.names[options_.self.value]});
}

void Sessions::end_session(WorkerId id, const Error& why) {
  Peer& from = peer(id);
  strand_.trace().on_event({.kind = EventKind::peer_fenced,
                            .worker = options_.self,
                            .peer = id,
                            .number = from.incarnation.value,
                            .text = why.text});
  fenced_.insert(from.incarnation);
  from.lost = why;
  from.link.up = false;
  // Arguments and their graphs die off the strand.
  strand_.release_later(std::make_shared<Ring<Unacked>>(std::exchange(from.unacked, {})));
  from.received.forget_above();
  loans_.lose(id);
  from.unacked_bytes = 0;
  from.unacked_of_shutdown = 0;
  from.unacked_of_group = 0;
  from.unread_answers = 0;
  auto queued = std::exchange(from.queued, {});
  for (std::list<Queued>& lane : queued)
    for (Queued& message : lane) drop_unsent(std::move(message));
  listener_.on_peer_fenced(id, from.incarnation, why);
  admit_to_all();
  progressed();
}

}  // namespace rehearsal
