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
constexpr size_t kRecordBytes = 16 * 1024;
constexpr Duration kFirstReportsApart = std::chrono::seconds(5);
constexpr Duration kReportsApartMax = std::chrono::minutes(5);

Error broken(std::string text) {
  Error error;
  error.kind = ErrorKind::peer_lost;
  error.text = std::move(text);
  return error;
}

std::string peer_text(const FileDescriptor& socket) {
  const std::optional<Address> peer = peer_address(socket);
  return peer ? to_string(*peer) : "it has gone";
}

}  // namespace

void RareReport::note(const Error& error, Instant now) {
  if (!tell_ || now < next_) return;
  apart_ = std::clamp<Duration>(2 * apart_, kFirstReportsApart, kReportsApartMax);
  next_ = now + apart_;
  tell_(error);
}

// The arrivals that one turn of the polling thread brings to the strand.
struct Connection::Arrivals {
  bool writable = false;
  bool secured = false;
  bool unproven = false;  // why is in `broken`
  std::optional<Handshake> handshake;
  std::vector<Frame> frames;
  bool ended = false;
  std::optional<Error> reason;  // of the end
  std::optional<Error> broken;
  bool turn_ended = false;  // there may be more that the kernel does not tell of
  bool blocked = false;     // the kernel has no more for now

  [[nodiscard]] bool any() const {
    return writable || secured || handshake || !frames.empty() || turn_ended || ended || broken;
  }
};

Connection::Connection(ConnectionContext& context, FileDescriptor fd, ConnectionOwner& owner)
    : context_(context), fd_(std::move(fd)), owner_(&owner) {}

std::shared_ptr<Connection> Connection::make(ConnectionContext& context, FileDescriptor fd,
                                             ConnectionOwner& owner, bool connecting) {
  std::shared_ptr<Connection> made(new Connection(context, std::move(fd), owner));
  made->connecting_ = connecting;
  if (connecting) made->mode_ = Mode::connect;
  made->interest_ = connecting ? uint32_t{EPOLLOUT} : 0u;
  made->poll_id_ = context.poller->add(made->fd_.get(), made->interest_, made);
  if (made->poll_id_ != Poller::kNotAdded) return made;
  context.note_shortage({.kind = ErrorKind::overloaded,
                         .text = "no connection can be watched: the kernel has no room for another "
                                 "(see /proc/sys/fs/epoll/max_user_watches)"});
  return nullptr;
}

// The strand.

void Connection::enter(Mode mode) {
  mode_ = mode;
  if (secured_) read_what_is_here();
  update_interest();
}

// The polling thread has taken bytes from the kernel that the mode before did not want. The kernel
// wakes it for them no more, but it does for a socket that can be written to.
void Connection::read_what_is_here() {
  if (!aborted_ && channel_->holds_input()) blocked_ = true;
}

void Connection::expect_handshake() {
  const bool proof_first = context_.credentials != nullptr && !secured_;
  enter(proof_first ? Mode::secure : Mode::handshake);
}

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
  // That there is room is told once: who waits for it asks anew.
  if (interest == interest_ && !writes) return;
  interest_ = interest;
  context_.poller->change(poll_id_, fd_.get(), interest);
}

ssize_t Connection::send_plain(uint64_t bytes_max) {
  std::array<iovec, kWritePieces> pieces;
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = writer_.gather(pieces, bytes_max);
  context_.writes.fetch_add(1, std::memory_order_relaxed);
  const ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) writer_.consume(static_cast<uint64_t>(sent));
  return sent;
}

ssize_t Connection::send_sealed() {
  context_.writes.fetch_add(1, std::memory_order_relaxed);
  const ssize_t sent = ::send(fd_.get(), sealed_.data() + sealed_sent_,
                              sealed_.size() - sealed_sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) sealed_sent_ += static_cast<size_t>(sent);
  return sent;
}

// Encrypts what comes next, `bytes_max` at most, once what was encrypted before has left.
Status Connection::seal(uint64_t bytes_max) {
  if (sealed_sent_ < sealed_.size()) return Unit{};
  sealed_.clear();
  sealed_sent_ = 0;
  std::array<iovec, kWritePieces> pieces;
  const size_t count = writer_.gather(pieces, bytes_max);
  uint64_t bytes = 0;
  gathered_.clear();
  const auto leave = [this] {
    const Status sealed = channel_->write(std::as_bytes(std::span(gathered_)), sealed_);
    gathered_.clear();
    return sealed;
  };
  for (const iovec& piece : std::span(pieces).first(count)) {
    const std::span data(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
    bytes += data.size();
    if (gathered_.size() + data.size() > kRecordBytes)
      if (const Status sealed = leave(); !sealed.ok()) return sealed;
    if (data.size() < kRecordBytes) {
      gathered_.append(reinterpret_cast<const char*>(data.data()), data.size());
    } else if (const Status sealed = channel_->write(data, sealed_); !sealed.ok()) {
      return sealed;
    }
  }
  writer_.consume(bytes);
  return leave();
}

void Connection::flush(uint64_t bytes_max) {
  while (!aborted_ && has_output() && bytes_max > 0) {
    const Status sealed = secured_ ? seal(bytes_max) : Unit{};
    const ssize_t sent = !sealed.ok() ? -1 : secured_ ? send_sealed() : send_plain(bytes_max);
    if (sealed.ok() && sent < 0 && errno == EINTR) continue;
    if (sealed.ok() && sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {
      const Error why = sealed.ok() ? broken(errno_text(errno)) : sealed.error();
      context_.runtime->post([self = shared_from_this(), why] {
        if (!self->aborted_) self->break_off(why);
      });
      drop_output();
      break;
    }
    bytes_max -= std::min(bytes_max, static_cast<uint64_t>(sent));
  }
  if (aborted_) return;
  blocked_ = has_output();
  if (!blocked_ && writer_.empty() && end_wanted_ && !end_sent_) {
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
  drop_output();
  shutdown(fd_.get(), SHUT_RDWR);
  context_.poller->remove(poll_id_, fd_.get());
}

void Connection::drop_output() {
  writer_.clear();
  sealed_.clear();
  sealed_sent_ = 0;
}

void Connection::on_writable() {
  if (mode_ == Mode::connect) return on_connect_ended();
  flush(kBytesPerTurn);
  if (!aborted_) owner_->on_written(*this);
}

void Connection::on_connect_ended() {
  mode_ = Mode::rest;
  update_interest();
  const int error = connect_result(fd_.get());
  refused_ = error == ECONNREFUSED;
  if (error != 0) return break_off(broken(errno_text(error)));
  if (context_.credentials == nullptr) return owner_->on_connected(*this);
  blocked_ = true;  // the polling thread is woken, and begins to shake hands
  enter(Mode::secure);
}

void Connection::on_secured() {
  secured_ = true;
  if (connecting_) return owner_->on_connected(*this);
  enter(Mode::handshake);
}

bool Connection::proves(const std::string& worker) const {
  return !secured_ || channel_->proves(worker);
}

// Each report may abort this connection, or give it another owner.
void Connection::take(Arrivals& arrivals) {
  if (arrivals.writable && !aborted_) on_writable();
  if (arrivals.secured && !aborted_) on_secured();
  if (arrivals.handshake && !aborted_) {
    update_interest();
    owner_->on_handshake(*this, std::move(*arrivals.handshake));
  }
  if (!arrivals.frames.empty() && !aborted_) owner_->on_frames(*this, std::move(arrivals.frames));
  if (arrivals.turn_ended && !aborted_) {
    read_what_is_here();
    update_interest();
  }
  if (arrivals.ended && !aborted_) {
    update_interest();
    owner_->on_end(*this, std::move(arrivals.reason));
  }
  if (arrivals.unproven) context_.unproven.note(*arrivals.broken, context_.runtime->now());
  if (arrivals.broken && !aborted_) break_off(*arrivals.broken);
}

// The polling thread.

void Connection::on_ready(uint32_t events) {
  Arrivals arrivals;
  const Mode mode = mode_;
  const bool failed = (events & (EPOLLERR | EPOLLHUP)) != 0;
  arrivals.writable = (events & EPOLLOUT) != 0 || (failed && mode == Mode::connect);
  // Encrypted bytes may have come before they were asked for.
  if ((events & EPOLLIN) != 0 || failed || context_.credentials != nullptr) {
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
  context_.runtime->post([self = shared_from_this(), arrived = std::make_unique<Arrivals>(std::move(
                                                         arrivals))] { self->take(*arrived); });
}

// All that a stranger can say: nothing is kept of it but OpenSSL's state, and no time is given to
// it on the strand. So few bytes as a handshake has always fit into a socket's buffer.
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
  std::string answer;
  Result<bool> proved = channel_->shake_hands(answer);
  while (proved.ok() && !proved.value() && feed_channel(arrivals))
    proved = channel_->shake_hands(answer);
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

// False if nothing has come.
bool Connection::feed_channel(Arrivals& arrivals) {
  std::array<std::byte, 4 * kRecordBytes> bytes;
  iovec room{bytes.data(), bytes.size()};
  const size_t count = receive_plain({&room, 1}, arrivals);
  if (count > 0) channel_->feed(std::span(bytes).first(count));
  return count > 0;
}

size_t Connection::receive_secured(std::span<iovec> room, Arrivals& arrivals) {
  size_t count = 0;
  for (const iovec& stretch : room) {
    std::span left(static_cast<std::byte*>(stretch.iov_base), stretch.iov_len);
    while (!left.empty()) {
      Result<size_t> read = channel_->read(left);
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
    bytes_read_ += count;
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
