// Peers that do not read what they have asked for.
#include "core/session/session.h"

namespace rehearsal {
namespace {

// Whether a message of its receiver has caused it, so that it leaves without waiting for room.
bool is_answer(const Message& message) {
  return std::holds_alternative<Response>(message.content) ||
         std::holds_alternative<End>(message.content) ||
         std::holds_alternative<ForkConfirm>(message.content) ||
         std::holds_alternative<GradientsAnswered>(message.content) ||
         std::holds_alternative<MarksAnswered>(message.content) ||
         std::holds_alternative<PassFinished>(message.content);
}

}  // namespace

bool Sessions::leaves_unread(WorkerId id) const {
  return id != options_.self && peer(id).unacked_bytes >= options_.limits.unread_bytes;
}

bool Sessions::any_waits(WorkerId id) const {
  return id != options_.self && peer(id).queued_count() > 0;
}

// An honest peer acknowledges what it has read within milliseconds, and has fewer calls on their
// way than these. Not in the middle of what has caused the answer: all tables change.
void Sessions::count_answer(WorkerId id, Unacked& unacked, const Message& message) {
  unacked.is_answer = is_answer(message);
  Peer& to = peer(id);
  if (!unacked.is_answer || ++to.unread_answers != options_.limits.unread_answers + 1) return;
  strand_.post([this, id, life = to.incarnation] {
    if (!stopped_ && peer(id).incarnation == life)
      accuse(id, {"Frame.acknowledged", "leaves more answers unread than can be on their way"});
  });
}

}  // namespace rehearsal
