#include "real_net/worker/presence.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>

#include "real_net/tcp/handshake.h"
#include "real_net/worker/bounded.h"

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBytesAtOnce = 4096;

// A connection that blocks, under TLS if there are credentials. Every call ends at the deadline.
class Question {
 public:
  Question(FileDescriptor socket, std::unique_ptr<SecureChannel> channel,
           Clock::time_point deadline)
      : socket_(std::move(socket)), channel_(std::move(channel)), deadline_(deadline) {}

  // Whether the other end has proved that it is this worker.
  [[nodiscard]] bool is_proved(const std::string& worker) {
    if (channel_ == nullptr) return true;
    std::string answer;
    Result<bool> proved = channel_->shake_hands(answer);
    while (proved.ok() && send_plain(answer) && !proved.value()) {
      answer.clear();
      if (!feed_channel()) return false;
      proved = channel_->shake_hands(answer);
    }
    return proved.ok() && proved.value() && channel_->proves(worker);
  }

  [[nodiscard]] bool send(const std::string& text) {
    if (channel_ == nullptr) return send_plain(text);
    std::string sealed;
    return channel_->write(std::as_bytes(std::span(text)), sealed).ok() && send_plain(sealed);
  }

  [[nodiscard]] bool receive(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t count = channel_ == nullptr ? receive_plain(bytes) : receive_secured(bytes);
      if (count == 0) return false;
      bytes = bytes.subspan(count);
    }
    return true;
  }

 private:
  // So few bytes always fit into a socket's buffer.
  [[nodiscard]] bool send_plain(const std::string& bytes) {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }

  [[nodiscard]] size_t receive_plain(std::span<std::byte> room) {
    // Bytes that are there are readable also when the time is over.
    while (Clock::now() < deadline_ && wait_readable(socket_.get(), deadline_)) {
      const ssize_t count = recv(socket_.get(), room.data(), room.size(), 0);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      return count < 0 ? 0 : static_cast<size_t>(count);
    }
    return 0;
  }

  [[nodiscard]] size_t receive_secured(std::span<std::byte> room) {
    while (true) {
      const Result<size_t> count = channel_->read(room);
      if (!count.ok()) return 0;
      if (count.value() > 0) return count.value();
      if (!feed_channel()) return 0;
    }
  }

  [[nodiscard]] bool feed_channel() {
    std::array<std::byte, kBytesAtOnce> bytes;
    const size_t count = receive_plain(bytes);
    channel_->feed(std::span(bytes).first(count));
    return count > 0;
  }

  const FileDescriptor socket_;
  const std::unique_ptr<SecureChannel> channel_;  // null: nothing is proved
  const Clock::time_point deadline_;
};

Presence ask(WorkerId worker, const MemberRecord& record, Credentials* credentials,
             Clock::time_point deadline) {
  if (is_refused(record.address, deadline)) return Presence::gone;
  Result<FileDescriptor> socket = connect_within(record.address, deadline);
  if (!socket.ok()) return Presence::silent;
  std::unique_ptr<SecureChannel> channel;
  if (credentials != nullptr) {
    Result<std::unique_ptr<SecureChannel>> opened = credentials->open(/*connects=*/true);
    if (!opened.ok()) return Presence::silent;
    channel = std::move(opened).value();
  }
  Question question(std::move(socket).value(), std::move(channel), deadline);
  if (!question.is_proved(record.name)) return Presence::silent;
  const bool asked = question.send(encode_handshake({.kind = HandshakeKind::question,
                                                     .from = worker,
                                                     .to = worker,
                                                     .incarnation = record.incarnation,
                                                     .token = 1}));
  std::array<std::byte, kHandshakeBytes> bytes;
  if (!asked || !question.receive(bytes) || !is_handshake(bytes)) return Presence::silent;
  Result<HandshakeHeader> header = parse_handshake_header(bytes);
  if (!header.ok()) return Presence::silent;
  const Result<Handshake> answer = finish_handshake(header.value(), {});
  if (!answer.ok() || answer.value().kind != HandshakeKind::presence) return Presence::silent;
  const bool is_it =
      answer.value().from == worker && answer.value().incarnation == record.incarnation;
  return is_it ? Presence::here : Presence::gone;
}

}  // namespace

Presence presence_of(WorkerId worker, const MemberRecord& record,
                     const std::shared_ptr<Credentials>& credentials, Clock::time_point deadline) {
  const std::function<Presence()> work = [worker, record, credentials, deadline] {
    return ask(worker, record, credentials.get(), deadline);
  };
  return within(deadline, work).value_or(Presence::silent);
}

}  // namespace rehearsal::real
