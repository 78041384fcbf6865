#include "real_net/tcp/tcp_transport.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

constexpr int kAcceptsPerTurn = 16;
constexpr Duration kListeningPause = std::chrono::milliseconds(100);

}  // namespace

// Accepts, on the thread that polls.
class TcpTransport::Listener final : public IoHandler {
 public:
  Listener(TcpTransport& transport, FileDescriptor socket)
      : transport_(transport), socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] Address address() const { return local_address(socket_); }

  void on_ready(uint32_t) override {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      FileDescriptor socket(accept4(fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      const int error = errno;
      if (!socket.valid()) {
        if (is_shortage(error))
          transport_.runtime_.post(
              [&transport = transport_, error] { transport.pause_listening(error); });
        return;
      }
      transport_.runtime_.post([&transport = transport_, accepted = std::move(socket)]() mutable {
        transport.on_accepted(std::move(accepted));
      });
    }
  }

 private:
  TcpTransport& transport_;
  const FileDescriptor socket_;  // closed when the polling thread has let go of it
};

TcpTransport::TcpTransport(RealRuntime& runtime, BufferPool& pool, TransportOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      names_(runtime),
      unidentified_(context_, options_.handshake_timeout,
                    [this](std::shared_ptr<Connection> connection, Handshake hello) {
                      on_hello(std::move(connection), std::move(hello));
                    }),
      lingering_(context_, options_.linger_timeout) {
  context_.runtime = &runtime;
  context_.poller = &runtime.poller();
  context_.pool = &pool;
  context_.credentials = options_.credentials.get();
  context_.shortage.set_tell(options_.on_shortage);
  context_.unproven.set_tell(options_.on_unproven);
  context_.wants_text = [this](const Handshake& hello) { return may_link(hello); };
}

TcpTransport::~TcpTransport() {
  // The runtime's strand rests: this is the only thread that is here.
  runtime_.post([this] {
    runtime_.set_flush(nullptr);
    abort();
  });
}

Status TcpTransport::listen(const Address& address) {
  Result<FileDescriptor> socket = listen_on(address);
  if (!socket.ok()) return socket.error();
  listener_ = std::make_shared<Listener>(*this, std::move(socket).value());
  address_ = listener_->address();
  listening_id_ = runtime_.poller().add(listener_->fd(), 0, listener_);
  if (listening_id_ == Poller::kNotAdded) return watch_error();
  return Unit{};
}

Address TcpTransport::reached_at() const {
  Address reached = options_.advertise.value_or(address_);
  if (reached.port == 0) reached.port = address_.port;
  return reached;
}

void TcpTransport::start(Hello hello, FrameSink& sink) {
  REHEARSAL_CHECK(sink_ == nullptr);
  REHEARSAL_CHECK(hello.greeting.size() <= kHandshakeTextMax, hello.greeting.size());
  hello_ = std::move(hello);
  sink_ = &sink;
  if (ended_) return;
  REHEARSAL_CHECK(listening_id_ != Poller::kNotAdded);
  runtime_.set_flush([this] { flush(); });
  runtime_.poller().change(listening_id_, listener_->fd(), EPOLLIN);
}

TcpLink& TcpTransport::link(WorkerId peer) {
  REHEARSAL_CHECK(peer != hello_.worker, peer);
  auto& found = links_[peer];
  if (found != nullptr) return *found;
  found = std::make_unique<TcpLink>(static_cast<LinkHost&>(*this), peer);
  const auto known = addresses_.find(peer);
  if (known != addresses_.end()) found->set_address(known->second);
  return *found;
}

void TcpTransport::set_address(WorkerId peer, Address address) {
  addresses_[peer] = address;
  const auto found = links_.find(peer);
  if (!ended_ && found != links_.end()) found->second->set_address(std::move(address));
}

void TcpTransport::open(WorkerId peer) {
  REHEARSAL_CHECK(sink_ != nullptr);
  if (!ended_) link(peer).open();
}

void TcpTransport::send(WorkerId peer, Frame frame) {
  const auto found = links_.find(peer);
  if (!ended_ && found != links_.end()) found->second->send(frame);
}

void TcpTransport::send_on(WorkerId peer) {
  const auto found = links_.find(peer);
  if (!ended_ && found != links_.end()) found->second->send_on();
}

void TcpTransport::break_link(WorkerId peer, const Error& why) {
  const auto found = links_.find(peer);
  if (!ended_ && found != links_.end()) found->second->break_off(why);
}

void TcpTransport::close(WorkerId peer, const Error& reason) {
  const auto found = links_.find(peer);
  if (!ended_ && found != links_.end()) found->second->close(reason);
}

uint64_t TcpTransport::queued_bytes(WorkerId peer) const {
  const auto found = links_.find(peer);
  return ended_ || found == links_.end() ? 0 : found->second->queued_bytes();
}

void TcpTransport::stop() {
  if (std::exchange(ended_, true)) return;
  stop_listening();
  for (auto& [peer, stopping] : links_) stopping->stop();
}

void TcpTransport::when_stopped(Task done) {
  REHEARSAL_CHECK(ended_);
  lingering_.when_empty(std::move(done));
}

void TcpTransport::abort() {
  ended_ = true;
  stop_listening();
  for (auto& [peer, link] : links_) link->abort();
  dirty_.clear();
  lingering_.drop_all();
}

void TcpTransport::stop_listening() {
  if (listening_id_ != Poller::kNotAdded)
    runtime_.poller().remove(std::exchange(listening_id_, Poller::kNotAdded), listener_->fd());
  listener_.reset();
  unidentified_.drop_all();
}

bool TcpTransport::believes(const Connection& connection, WorkerId worker) {
  const auto& names = options_.names;
  const std::string name =
      worker.value < names.size() ? names[worker.value] : std::to_string(worker.value);
  if (connection.proves(name)) return true;
  context_.unproven.note(
      {.kind = ErrorKind::protocol,
       .text = "an end that says it is worker '" + name + "' shows a certificate of another name"},
      runtime_.now());
  return false;
}

void TcpTransport::mark_dirty(TcpLink& link) {
  if (std::find(dirty_.begin(), dirty_.end(), &link) == dirty_.end()) dirty_.push_back(&link);
}

void TcpTransport::on_change(const TcpLink& link) {
  if (link.is_beside()) {
    beside_.insert(&link);
  } else {
    beside_.erase(&link);
  }
  runtime_.set_neighbours(static_cast<int>(beside_.size()));
}

void TcpTransport::flush() {
  for (TcpLink* link : dirty_) link->flush();
  dirty_.clear();
}

void TcpTransport::see_off(std::shared_ptr<Connection> connection) {
  lingering_.add(std::move(connection));
}

void TcpTransport::see_off_answer(std::shared_ptr<Connection> connection) {
  if (lingering_.size() >= options_.answers_max) return connection->abort();
  lingering_.add(std::move(connection));
}

void TcpTransport::on_accepted(FileDescriptor socket) {
  if (ended_) return;
  set_stream_options(socket.get(), options_.keep_alive);
  unidentified_.add(std::move(socket));
}

// The process has no descriptor left: what waits is accepted when there may be one again.
void TcpTransport::pause_listening(int error) {
  if (listening_id_ == Poller::kNotAdded) return;
  context_.note_shortage(shortage_error(error));
  runtime_.poller().change(listening_id_, listener_->fd(), 0);
  runtime_.call_at(runtime_.now() + kListeningPause, [this] {
    if (listening_id_ != Poller::kNotAdded)
      runtime_.poller().change(listening_id_, listener_->fd(), EPOLLIN);
  });
}

bool TcpTransport::is_for_us(const Handshake& hello) const {
  return hello.to == hello_.worker && hello.token != 0 && hello.incarnation.value != 0;
}

// By what does not change after `start`: the polling thread asks, too.
bool TcpTransport::may_link(const Handshake& hello) const {
  const auto& names = options_.names;
  return is_for_us(hello) && hello.kind == HandshakeKind::hello &&
         (names.empty() || hello.from.value < names.size()) && hello.run == run_hash(options_.run);
}

void TcpTransport::on_hello(std::shared_ptr<Connection> connection, Handshake hello) {
  const bool for_us = is_for_us(hello);
  if (for_us && hello.kind == HandshakeKind::question)
    return answer(std::move(connection), hello, HandshakeKind::presence, {});
  const auto found = links_.find(hello.from);
  // Somebody else than a worker of this group, or one that reached the wrong address.
  if (!for_us || hello.kind != HandshakeKind::hello || found == links_.end() ||
      !believes(*connection, hello.from))
    return connection->abort();
  if (hello.run != run_hash(options_.run))
    return answer(std::move(connection), hello, HandshakeKind::refusal,
                  error_to_text(of_another_run()));
  if (!may_link(hello)) return connection->abort();  // without its text
  found->second->on_arrival(std::move(connection), std::move(hello));
}

void TcpTransport::answer(std::shared_ptr<Connection> connection, const Handshake& hello,
                          HandshakeKind kind, std::string text) {
  connection->writer().append_bytes(encode_handshake({.kind = kind,
                                                      .lane = hello.lane,
                                                      .from = hello_.worker,
                                                      .to = hello.from,
                                                      .incarnation = hello_.incarnation,
                                                      .token = hello.token,
                                                      .run = run_hash(options_.run),
                                                      .text = std::move(text)}));
  see_off_answer(std::move(connection));
}

Error TcpTransport::of_another_run() const {
  const uint32_t self = hello_.worker.value;
  Error error;
  error.kind = ErrorKind::protocol;
  if (self < options_.names.size()) error.worker = options_.names[self];
  error.text = "the worker at " + to_string(reached_at()) + " is of another run" +
               (options_.run.empty() ? " (of one without an id)" : " ('" + options_.run + "')") +
               ": its address was that of this group's '" + error.worker +
               "' before, or two groups meet at one place";
  return error;
}

TcpTransport::Census TcpTransport::census() const {
  return {.reads = context_.reads.load(std::memory_order_relaxed),
          .writes = context_.writes.load(std::memory_order_relaxed),
          .unidentified = unidentified_.size(),
          .leaving = lingering_.size()};
}

}  // namespace rehearsal::real
