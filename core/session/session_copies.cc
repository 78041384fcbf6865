// Sessions: messages whose tensors devices have yet to copy, and loans.
#include <algorithm>

#include "core/session/session.h"

namespace rehearsal {
namespace {

// Null: it has none whose tensors devices copy.
const Payload* copied_payload(const Message& message) {
  const Payload* payload = nullptr;
  if (const Call* call = std::get_if<Call>(&message.content)) payload = &call->arguments;
  if (const Item* item = std::get_if<Item>(&message.content)) payload = &item->value;
  if (const Response* response = std::get_if<Response>(&message.content))
    payload = &response->value;
  if (const Gradients* gradients = std::get_if<Gradients>(&message.content))
    payload = &gradients->gradients;
  const bool has_devices = payload != nullptr && payload->devices != nullptr;
  return has_devices && payload->devices->copies != nullptr ? payload : nullptr;
}

DeviceCopies* copies_of(const Message& message) {
  const Payload* const payload = copied_payload(message);
  return payload == nullptr ? nullptr : payload->devices->copies.get();
}

// How soon devices are asked again whether they have copied, and how seldom at last.
constexpr Duration kCopiesPause = std::chrono::microseconds(20);
constexpr Duration kCopiesPauseMax = std::chrono::milliseconds(1);

// Says of a message in place of another one why that cannot be sent.
void put_failure(Message& instead, const std::string& failure) {
  if (Call* call = std::get_if<Call>(&instead.content)) call->failure = failure;
  if (Response* response = std::get_if<Response>(&instead.content)) response->error->text = failure;
  if (Item* item = std::get_if<Item>(&instead.content)) item->error->text = failure;
  if (PassFailed* failed = std::get_if<PassFailed>(&instead.content)) failed->error.text = failure;
}

}  // namespace

bool Sessions::has_copies(const Message& message) { return copies_of(message) != nullptr; }

bool Sessions::is_being_copied(const Message& message) const {
  if (options_.mutants.on(Mutant::sent_before_it_is_copied)) return false;
  DeviceCopies* const copies = copies_of(message);
  return copies != nullptr && !copies->done();
}

bool Sessions::is_ready(const Message& message) const {
  if (options_.mutants.on(Mutant::sent_before_it_is_copied)) return true;
  DeviceCopies* const copies = copies_of(message);
  return copies == nullptr || copies->begun();
}

void Sessions::await_copies() {
  if (copies_timer_) return;
  copies_pause_ =
      copies_pause_.count() == 0 ? kCopiesPause : std::min(2 * copies_pause_, kCopiesPauseMax);
  copies_timer_ = strand_.runtime().call_at(strand_.runtime().now() + copies_pause_, [this] {
    copies_timer_.reset();
    look_at_copies();
  });
}

// All that is done by now leaves; for the rest they are looked at again.
void Sessions::look_at_copies() {
  const auto waits = [this](const Queued& queued) { return is_being_copied(queued.message); };
  for (auto& [to, returned] : loans_.look()) send(to, std::move(returned));
  look_at_filling();
  bool any = loans_.waits() || !filling_.empty() ||
             std::any_of(copied_to_self_.begin(), copied_to_self_.end(), waits);
  for (const Peer& to : peers_)
    for (const std::list<Queued>& queued : to.queued)
      any |= std::any_of(queued.begin(), queued.end(),
                         [this](const Queued& waiting) { return !is_ready(waiting.message); });
  if (any)
    await_copies();
  else
    copies_pause_ = {};
  for (uint32_t id = 0; id < peers_.size(); ++id) admit_queued(WorkerId{id});
  for (auto next = copied_to_self_.begin(); next != copied_to_self_.end();) {
    if (waits(*next) || is_behind(next->message, copied_to_self_.begin(), next)) {
      ++next;
      continue;
    }
    Queued copied = std::move(*next);
    next = copied_to_self_.erase(next);
    send_to_self(copied.message, std::move(copied.options));
  }
  // Loans of lost workers end without an acknowledgement.
  if (!any) progressed();
}

void Sessions::leave_while_copied(WorkerId to, const Message& message, uint64_t sequence,
                                  FrameBody& body) {
  if (options_.mutants.on(Mutant::sent_before_it_is_copied)) return;
  if (options_.mutants.on(Mutant::rest_sent_before_it_is_copied)) return;
  const std::shared_ptr<DeviceCopies>& copies = copied_payload(message)->devices->copies;
  copies->leave_in(body);
  if (body.is_filled()) return;
  strand_.mark("a message leaves while devices copy the rest of its tensors");
  filling_.push_back({to, peer(to).incarnation, sequence, copies, body.filled});
  await_copies();
}

// That much of them leaves as has been copied by now.
void Sessions::look_at_filling() {
  for (Filling& filling : std::exchange(filling_, {})) {
    DeviceCopies& copies = *filling.copies;
    const uint64_t before = *filling.filled;
    const bool is_done = copies.done();
    if (copies.failure()) {
      give_up_filling(filling);
      continue;
    }
    if (*filling.filled != before) {
      copies_pause_ = {};
      transport_.send_on(filling.to);
    }
    if (!is_done) filling_.push_back(std::move(filling));
  }
}

// A device has failed in the middle of a message, which has left in part. The link breaks, so that
// the rest is not missed; what goes in the message's place has its number.
void Sessions::give_up_filling(const Filling& failed) {
  Peer& to = peer(failed.to);
  if (to.lost || to.incarnation != failed.life) return;
  // Only a peer that lies has acknowledged it.
  if (to.unacked.empty() || to.unacked.front().sequence > failed.sequence) return;
  Unacked& unacked = to.unacked.at(failed.sequence - to.unacked.front().sequence);
  if (unacked.replaced) return;
  strand_.mark("a device fails in the middle of a message");
  const std::optional<std::string> failure = failed.copies->failure();
  REHEARSAL_CHECK(unacked.carried != nullptr, failed.sequence);
  put_failure(unacked.carried->instead, *failure);
  const std::shared_ptr<CarriedTensors> carried = replace(to, unacked);
  transport_.break_link(failed.to, {.kind = ErrorKind::peer_lost,
                                    .text = "a device has failed in the middle of a message"});
  if (carried->on_changed) carried->on_changed(failure);
  strand_.release_later(carried);
}

// The message leaves.
void Sessions::note_loans(WorkerId to, const Message& message) {
  DeviceCopies* const copies = copies_of(message);
  if (copies == nullptr) return;
  if (std::vector<LoanId> loans = copies->take_loans(); !loans.empty())
    loans_.leave(to, std::move(loans));
}

void Sessions::on_returned(WorkerId from, const LoansReturned& returned) {
  if (const std::optional<Violation> violation = loans_.take_back(from, returned))
    accuse(from, *violation);
}

// Of tensors that a failed device has not copied, or that were changed while the message waited,
// goes what is to go in their place.
void Sessions::transmit_or_instead(WorkerId id, Queued&& message) {
  const DeviceCopies* const copies = copies_of(message.message);
  const auto failure = copies == nullptr ? std::nullopt : copies->failure();
  const CarriedTensors* const carries = message.options.carried.get();
  const bool changed = carries != nullptr && carries->have_changed() &&
                       !options_.mutants.on(Mutant::changes_before_sending_count);
  if (carries == nullptr || (!failure && !changed))
    return transmit_new(id, message.message, std::move(message.options));
  const std::shared_ptr<CarriedTensors> carried = std::move(message.options.carried);
  if (failure)
    put_failure(carried->instead, *failure);
  else
    strand_.mark("a tensor changed before it was sent");
  transmit_new(id, carried->instead, std::move(message.options));
  if (carried->on_changed) carried->on_changed(failure);
  strand_.release_later(carried);
}

}  // namespace rehearsal
