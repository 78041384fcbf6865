#include "real_net/tcp/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/check.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {
namespace {

constexpr uint64_t kBytesPerTurn = 256 * 1024;
constexpr size_t kWritePieces = 256;
constexpr size_t kHandshakeTextStep = 16 * 1024;

Error broken(std::string text) {
  Error error;
  error.kind = ErrorKind::peer_lost;
  error.text = std::move(text);
  return error;
}

}  // namespace

// The arrivals that one turn of the polling thread brings to the strand.
struct Connection::Arrivals {
  bool writable = false;
  std::optional<Handshake> handshake;
  std::vector<Frame> frames;
  bool ended = false;
  std::optional<Error> reason;  // of the end
  std::optional<Error> broken;
  bool blocked = false;  // the kernel has no more for now

  [[nodiscard]] bool any() const {
    return writable || handshake || !frames.empty() || ended || broken;
  }
};

Connection::Connection(ConnectionContext& context, FileDescriptor fd, ConnectionOwner& owner)
    : context_(context), fd_(std::move(fd)), owner_(&owner) {}

std::shared_ptr<Connection> Connection::make(ConnectionContext& context, FileDescriptor fd,
                                             ConnectionOwner& owner, bool connecting) {
  std::shared_ptr<Connection> made(new Connection(context, std::move(fd), owner));
  if (connecting) made->mode_ = Mode::connect;
  made->interest_ = connecting ? uint32_t{EPOLLOUT} : 0u;
  made->poll_id_ = context.poller->add(made->fd_.get(), made->interest_, made);
  if (made->poll_id_ == Poller::kNotAdded) return nullptr;
  return made;
}

// The strand.

void Connection::enter(Mode mode) {
  mode_ = mode;
  update_interest();
}

void Connection::expect_handshake() { enter(Mode::handshake); }

void Connection::expect_frames(Lane lane) {
  lane_ = lane;
  enter(Mode::frames);
}

void Connection::expect_end() { enter(Mode::discard); }

void Connection::update_interest() {
  if (aborted_) return;
  const Mode mode = mode_;
  const bool writes = blocked_ || mode == Mode::connect;
  const bool reads = mode != Mode::rest && mode != Mode::connect;
  const uint32_t interest = (reads ? uint32_t{EPOLLIN} : 0u) | (writes ? uint32_t{EPOLLOUT} : 0u);
  if (interest == interest_) return;
  interest_ = interest;
  context_.poller->change(poll_id_, fd_.get(), interest);
}

void Connection::flush(uint64_t bytes_max) {
  std::array<iovec, kWritePieces> pieces;
  while (!aborted_ && !writer_.empty() && bytes_max > 0) {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = writer_.gather(pieces, bytes_max);
    context_.writes.fetch_add(1, std::memory_order_relaxed);
    const ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) {
      context_.runtime->post([self = shared_from_this(), error = errno] {
        if (!self->aborted_) self->break_off(broken(errno_text(error)));
      });
      writer_.clear();
      break;
    }
    if (sent < 0) break;
    writer_.consume(static_cast<uint64_t>(sent));
    bytes_max -= static_cast<uint64_t>(sent);
  }
  if (aborted_) return;
  blocked_ = !writer_.empty();
  if (!blocked_ && end_wanted_ && !end_sent_) {
    end_sent_ = true;
    shutdown(fd_.get(), SHUT_WR);
  }
  update_interest();
}

void Connection::end_output() {
  end_wanted_ = true;
  flush(kBytesPerTurn);
}

void Connection::break_off(const Error& why) {
  abort();
  owner_->on_broken(*this, why);
}

void Connection::abort() {
  if (aborted_) return;
  aborted_ = true;
  mode_ = Mode::rest;
  writer_.clear();
  shutdown(fd_.get(), SHUT_RDWR);
  context_.poller->remove(poll_id_, fd_.get());
}

void Connection::on_writable() {
  if (mode_ != Mode::connect) {
    flush(kBytesPerTurn);
    if (!aborted_) owner_->on_written(*this);
    return;
  }
  mode_ = Mode::rest;
  update_interest();
  const int error = connect_result(fd_.get());
  if (error != 0) return break_off(broken(errno_text(error)));
  owner_->on_connected(*this);
}

// Each report may abort this connection, or give it another owner.
void Connection::take(Arrivals& arrivals) {
  if (arrivals.writable && !aborted_) on_writable();
  if (arrivals.handshake && !aborted_) {
    update_interest();
    owner_->on_handshake(*this, std::move(*arrivals.handshake));
  }
  if (!arrivals.frames.empty() && !aborted_) owner_->on_frames(*this, std::move(arrivals.frames));
  if (arrivals.ended && !aborted_) {
    update_interest();
    owner_->on_end(*this, std::move(arrivals.reason));
  }
  if (arrivals.broken && !aborted_) break_off(*arrivals.broken);
}

// The polling thread.

void Connection::on_ready(uint32_t events) {
  Arrivals arrivals;
  const Mode mode = mode_;
  const bool failed = (events & (EPOLLERR | EPOLLHUP)) != 0;
  arrivals.writable = (events & EPOLLOUT) != 0 || (failed && mode == Mode::connect);
  if ((events & EPOLLIN) != 0 || failed) {
    switch (mode) {
      case Mode::connect:
        break;
      case Mode::rest:
        if (failed) arrivals.broken = broken("connection reset");
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
  context_.runtime->post([self = shared_from_this(), arrived = std::make_unique<Arrivals>(std::move(
                                                         arrivals))] { self->take(*arrived); });
}

size_t Connection::receive(std::span<iovec> room, Arrivals& arrivals) {
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
      continue;
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
