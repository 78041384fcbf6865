#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/check.h"
#include "real_net/tcp/arrivals.h"
#include "real_net/tcp/socket.h"

// The half of a Connection that the polling thread has.
namespace rehearsal::real {
namespace {

constexpr size_t kHandshakeTextStep = 16 * 1024;

// A proof has some kilobytes: a stranger is not heard any longer than that.
constexpr size_t kProofBytesPerTurn = 8 * 1024;
constexpr uint64_t kProofBytesMax = 32 * 1024;

// Records without data renew a key. There is one for many gigabytes, so more bytes than a record
// may have, and not one of them of data, come from nobody who means well.
constexpr uint64_t kFedInVainMax = 2 * kRecordBytes;

std::string peer_text(const FileDescriptor& socket) {
  const std::optional<Address> peer = peer_address(socket);
  return peer ? to_string(*peer) : "it has gone";
}

}  // namespace

void Connection::on_ready(uint32_t events) {
  if (told_broken_) return context_.poller->quieten(poll_id_);
  Arrivals arrivals;
  const Mode mode = mode_;
  const bool failed = (events & (EPOLLERR | EPOLLHUP)) != 0;
  arrivals.writable = (events & EPOLLOUT) != 0 || (failed && mode == Mode::connect);
  // Encrypted bytes may have come before they were asked for.
  const bool may_hold_input = context_.credentials != nullptr && !paused_;
  if ((events & EPOLLIN) != 0 || failed || may_hold_input) {
    switch (mode) {
      case Mode::connect:
        break;
      case Mode::rest:
        if (failed) arrivals.broken = broken("connection reset");
        break;
      case Mode::secure:
        shake_hands(arrivals);
        break;
      case Mode::handshake:
        read_handshake(arrivals);
        break;
      case Mode::frames:
        read_frames(arrivals);
        break;
      case Mode::discard:
        read_to_end(arrivals);
        break;
    }
  }
  if (!arrivals.any()) return;
  told_broken_ = arrivals.broken.has_value();
  if (told_broken_ || (failed && mode == Mode::connect)) context_.poller->quieten(poll_id_);
  if (!arrivals.frames.empty()) arrivals.frame_bytes = std::exchange(unposted_, 0);
  under_way_ += arrivals.frame_bytes;
  context_.runtime->post([self = shared_from_this(), arrived = std::make_unique<Arrivals>(std::move(
                                                         arrivals))] { self->take(*arrived); });
  if (under_way_ > kUnderWayMax) pause();
}

// The strand is behind: what comes waits in the kernel, and then at the peer. The strand goes on
// when it has taken what is under way; if it has just done so, it has not seen that reading rests.
void Connection::pause() {
  context_.poller->hold_input(poll_id_, true);
  paused_ = true;
  if (under_way_ <= kUnderWayMax && paused_.exchange(false))
    context_.poller->hold_input(poll_id_, false);
}

// All that a stranger can say: nothing is kept of it but OpenSSL's state, and no time is given to
// it on the strand. More than a turn's bytes wait for the next turn, so that the others have
// theirs. So few bytes as a handshake has always fit into a socket's buffer.
void Connection::shake_hands(Arrivals& arrivals) {
  if (channel_ == nullptr) {
    Result<std::unique_ptr<SecureChannel>> opened = context_.credentials->open(connecting_);
    if (!opened.ok()) {
      arrivals.broken = opened.error();
      mode_ = Mode::rest;
      return;
    }
    channel_ = std::move(opened).value();
  }
  std::array<std::byte, kProofBytesPerTurn> bytes;
  iovec room{bytes.data(), std::min<uint64_t>(bytes.size(), kProofBytesMax - proof_bytes_)};
  const size_t count = receive_plain({&room, 1}, arrivals);
  if (count > 0) channel_->feed(std::span(bytes).first(count));
  proof_bytes_ += count;
  std::string answer;
  Result<bool> proved = channel_->shake_hands(answer);
  if (proved.ok() && !proved.value() && proof_bytes_ >= kProofBytesMax)
    proved = Error{.kind = ErrorKind::protocol,
                   .text = "the other end has said " + std::to_string(proof_bytes_) +
                           " bytes and has not proved that it belongs to this group"};
  if (!answer.empty() &&
      ::send(fd_.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    arrivals.broken = broken(errno_text(errno));
  if (!proved.ok()) {
    arrivals.broken = proved.error();
    arrivals.broken->text += " (" + peer_text(fd_) + ")";
    arrivals.unproven = true;
  } else if (proved.value() && !arrivals.broken) {
    arrivals.secured = true;
  } else if (!arrivals.broken && !arrivals.ended) {
    return;
  }
  mode_ = Mode::rest;
}

size_t Connection::receive(std::span<iovec> room, Arrivals& arrivals) {
  return channel_ == nullptr ? receive_plain(room, arrivals) : receive_secured(room, arrivals);
}

// False if nothing has come, or if it has to wait for the next turn.
bool Connection::feed_channel(Arrivals& arrivals) {
  if (arrivals.fed >= kBytesPerTurn) return false;
  std::array<std::byte, 4 * kRecordBytes> bytes;
  iovec room{bytes.data(), bytes.size()};
  const size_t count = receive_plain({&room, 1}, arrivals);
  if (count > 0) channel_->feed(std::span(bytes).first(count));
  arrivals.fed += count;
  fed_in_vain_ += count;
  return count > 0;
}

size_t Connection::receive_secured(std::span<iovec> room, Arrivals& arrivals) {
  size_t count = 0;
  for (const iovec& stretch : room) {
    std::span left(static_cast<std::byte*>(stretch.iov_base), stretch.iov_len);
    while (!left.empty()) {
      Result<size_t> read = channel_->read(left);
      if (read.ok() && read.value() > 0)
        fed_in_vain_ = 0;
      else if (read.ok() && fed_in_vain_ > kFedInVainMax)
        read = network_error("the other end sends records without data");
      if (!read.ok()) {
        mode_ = Mode::rest;
        arrivals.broken = read.error();
        return count;
      }
      count += read.value();
      left = left.subspan(read.value());
      if (read.value() == 0 && !feed_channel(arrivals)) return count;
    }
  }
  return count;
}

size_t Connection::receive_plain(std::span<iovec> room, Arrivals& arrivals) {
  msghdr message{};
  message.msg_iov = room.data();
  message.msg_iovlen = room.size();
  ssize_t count = -1;
  do {
    context_.reads.fetch_add(1, std::memory_order_relaxed);
    count = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count > 0) return static_cast<size_t>(count);
  arrivals.blocked = count < 0 && errno == EAGAIN;
  if (arrivals.blocked) return 0;
  mode_ = Mode::rest;
  if (count == 0) {
    arrivals.ended = true;
  } else {
    arrivals.broken = broken(errno_text(errno));
  }
  return 0;
}

bool Connection::may_be_read(const Handshake& hello) const {
  return connecting_ || !context_.wants_text || context_.wants_text(hello);
}

// Takes exactly the bytes of the record: what follows belongs to the next reader.
void Connection::read_handshake(Arrivals& arrivals) {
  for (;;) {
    const size_t have = text_.size();
    const size_t wanted = header_ ? header_->text_bytes : kHandshakeBytes;
    if (have < wanted) {
      text_.resize(std::min(wanted, have + kHandshakeTextStep));
      iovec room{text_.data() + have, text_.size() - have};
      const size_t count = receive({&room, 1}, arrivals);
      text_.resize(have + count);
      if (count == 0) return;
      continue;
    }
    if (!header_) {
      auto header = parse_handshake_header(std::as_bytes(std::span(text_)));
      if (!header.ok()) {
        arrivals.broken = header.error();
        break;
      }
      header_ = std::move(header).value();
      text_.clear();
      if (header_->text_bytes == 0 || may_be_read(header_->handshake)) continue;
      arrivals.handshake = header_->handshake;
      break;
    }
    Result<Handshake> handshake = finish_handshake(*header_, std::move(text_));
    if (handshake.ok()) {
      arrivals.handshake = std::move(handshake).value();
    } else {
      arrivals.broken = handshake.error();
    }
    break;
  }
  mode_ = Mode::rest;
  header_.reset();
  text_.clear();
}

void Connection::read_frames(Arrivals& arrivals) {
  if (!parser_) parser_.emplace(*context_.pool, lane_);
  uint64_t left = kBytesPerTurn;
  while (left > 0) {
    const std::span<iovec> room = parser_->room(left);
    uint64_t offered = 0;
    for (const iovec& stretch : room) offered += stretch.iov_len;
    const size_t count = receive(room, arrivals);
    if (count == 0) break;
    left -= count;
    bytes_read_ += count;
    unposted_ += count;
    const Status parsed = parser_->commit(count, arrivals.frames);
    if (!parsed.ok()) {
      mode_ = Mode::rest;
      arrivals.broken = parsed.error();
      return;
    }
    if (parser_->closing()) {
      mode_ = Mode::rest;
      arrivals.ended = true;
      arrivals.reason = parser_->closing();
      return;
    }
    // A short read has emptied the kernel's buffer.
    if (count < offered) break;
  }
  arrivals.turn_ended = left == 0 && channel_ != nullptr;
  unfinished_frame_.store(parser_->between_frames() ? 0 : bytes_read_, std::memory_order_relaxed);
  if (arrivals.ended && !parser_->between_frames()) {
    arrivals.ended = false;
    arrivals.broken = broken("the stream ended within a frame");
  }
}

void Connection::read_to_end(Arrivals& arrivals) {
  std::array<std::byte, 16 * 1024> dropped;
  for (uint64_t left = kBytesPerTurn; left > 0;) {
    iovec room{dropped.data(), dropped.size()};
    const size_t count = receive({&room, 1}, arrivals);
    if (count == 0) return;
    left -= std::min<uint64_t>(left, count);
  }
}

}  // namespace rehearsal::real
