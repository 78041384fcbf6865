#include "real_net/tcp/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "real_net/tcp/arrivals.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {
namespace {

constexpr size_t kWritePieces = 256;
constexpr Duration kFirstReportsApart = std::chrono::seconds(5);
constexpr Duration kReportsApartMax = std::chrono::minutes(5);

}  // namespace

void RareReport::note(const Error& error, Instant now) {
  if (!tell_ || now < next_) return;
  apart_ = std::clamp<Duration>(2 * apart_, kFirstReportsApart, kReportsApartMax);
  next_ = now + apart_;
  tell_(error);
}

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
  context.note_shortage(watch_error());
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

// Lets bytes be read again if they were held back.
void Connection::note_taken(uint64_t bytes) {
  under_way_ -= bytes;
  if (under_way_ > kUnderWayMax || !paused_ || !paused_.exchange(false)) return;
  context_.poller->hold_input(poll_id_, false);
  if (!secured_ || aborted_) return;
  read_what_is_here();
  update_interest();
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
  if (arrivals.frame_bytes > 0) note_taken(arrivals.frame_bytes);
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

}  // namespace rehearsal::real
