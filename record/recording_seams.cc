#include "record/recording_seams.h"

#include "core/base/hash.h"
#include "record/digest.h"

namespace rehearsal::record {

void RecordingTransport::open(WorkerId peer) {
  recorder_.note(digest_of(Order::open, peer));
  transport_.open(peer);
}

void RecordingTransport::send(WorkerId peer, Frame frame) {
  recorder_.note(digest_of(Order::send, peer, hash_of(frame)));
  transport_.send(peer, std::move(frame));
}

void RecordingTransport::close(WorkerId peer, const Error& reason) {
  recorder_.note(digest_of(Order::close, peer, hash_text(to_string(reason))));
  transport_.close(peer, reason);
}

uint64_t RecordingTransport::queued_bytes(WorkerId peer) const {
  const uint64_t bytes = transport_.queued_bytes(peer);
  recorder_.note_queued_bytes(bytes);
  return bytes;
}

void RecordingTransport::stop() {
  recorder_.note(digest_of(Order::stop, kNoPeer));
  transport_.stop();
}

void RecordingSink::on_peer_up(const Hello& hello) {
  runtime_.enter([&] { sink_.on_peer_up(hello); }, hello);
}

void RecordingSink::on_frame(WorkerId peer, Frame frame) {
  runtime_.enter([&] { sink_.on_frame(peer, std::move(frame)); }, peer, frame);
}

void RecordingSink::on_peer_lost(WorkerId peer, const Error& why, bool closed_by_peer) {
  runtime_.enter([&] { sink_.on_peer_lost(peer, why, closed_by_peer); },
                 PeerLost{peer, why, closed_by_peer});
}

void RecordingSink::on_drained(WorkerId peer) {
  runtime_.enter([&] { sink_.on_drained(peer); }, Drained{peer});
}

void RecordingSink::on_refused(WorkerId peer, const Refusals& refusals) {
  runtime_.enter([&] { sink_.on_refused(peer, refusals); }, PeerRefused{peer, refusals});
}

void RecordingTrace::on_event(const Event& event) {
  recorder_.note(digest_of(event));
  trace_.on_event(event);
}

Status RecordingCheckpoints::save(const std::string& name, const std::string& bytes) {
  Status saved = checkpoints_.save(name, bytes);
  if (saved.ok())
    runtime_.note({Reading::Kind::saved, 0, {}});
  else
    runtime_.note({Reading::Kind::disk_fails, 0, saved.error().text});
  return saved;
}

Result<std::optional<std::string>> RecordingCheckpoints::load(const std::string& name) {
  Result<std::optional<std::string>> found = checkpoints_.load(name);
  if (!found.ok())
    runtime_.note({Reading::Kind::disk_fails, 0, found.error().text});
  else if (!found.value())
    runtime_.note({Reading::Kind::no_such, 0, {}});
  else
    runtime_.note({Reading::Kind::loaded, 0, *found.value()});
  return found;
}

}  // namespace rehearsal::record
