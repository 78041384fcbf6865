#include "real_net/worker/metrics_server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "real_net/worker/http_answer.h"

namespace rehearsal::real {
namespace {

// Reported once, and then again when the strand has read what had come.
constexpr uint32_t kReadable = EPOLLIN | EPOLLONESHOT;
constexpr uint32_t kWritable = EPOLLOUT | EPOLLONESHOT;
constexpr int kAcceptsPerTurn = 16;  // so that strangers do not hold the strand
constexpr Duration kListeningPause = std::chrono::milliseconds(100);

}  // namespace

class MetricsServer::Listener final : public IoHandler {
 public:
  Listener(MetricsServer& server, FileDescriptor socket)
      : server_(server), socket_(std::move(socket)) {}

  [[nodiscard]] const FileDescriptor& socket() const { return socket_; }
  void on_ready(uint32_t) override {
    server_.runtime_.post([&server = server_] { server.on_connections(); });
  }

 private:
  MetricsServer& server_;
  const FileDescriptor socket_;
};

// One connection: a request, an answer, and the wait until the peer has hung up.
class MetricsServer::Exchange final : public IoHandler,
                                      public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(MetricsServer& server, FileDescriptor socket)
      : server_(server), socket_(std::move(socket)) {}

  [[nodiscard]] bool open() {
    poll_id_ = server_.runtime_.poller().add(socket_.get(), kReadable, shared_from_this());
    return poll_id_ != Poller::kNotAdded;
  }
  void close() {
    if (poll_id_ == Poller::kNotAdded) return;
    server_.runtime_.poller().remove(std::exchange(poll_id_, Poller::kNotAdded), socket_.get());
    // The peer learns of it now, whoever still holds this.
    ::shutdown(socket_.get(), SHUT_RDWR);
  }

  // The polling thread. The server outlives the runtime's threads.
  void on_ready(uint32_t) override {
    server_.runtime_.post([self = shared_from_this()] { self->proceed(); });
  }

 private:
  void proceed() {
    if (poll_id_ == Poller::kNotAdded) return;
    if (answer_.empty())
      read();
    else if (sent_ < answer_.size())
      write();
    else
      wait_for_end();
  }

  void read() {
    std::array<char, 4096> bytes;
    bool ended = false;
    while (request_.size() <= kHttpRequestMax) {
      const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return server_.drop(*this);
      ended = count == 0;
      if (count <= 0) break;
      request_.append(bytes.data(), static_cast<size_t>(count));
    }
    if (ended && request_.empty()) return server_.drop(*this);
    std::optional<std::string> answer = http_answer(request_, ended, server_.page_);
    if (!answer) return again(kReadable);
    answer_ = std::move(*answer);
    write();
  }

  void write() {
    while (sent_ < answer_.size()) {
      const ssize_t count =
          ::send(socket_.get(), answer_.data() + sent_, answer_.size() - sent_, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return again(kWritable);
      if (count < 0) return server_.drop(*this);
      sent_ += static_cast<size_t>(count);
    }
    ::shutdown(socket_.get(), SHUT_WR);
    wait_for_end();
  }

  // Closing with bytes unread would make the system throw the answer away.
  void wait_for_end() {
    std::array<char, 4096> bytes;
    for (int turn = 0; turn < 16; ++turn) {
      const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (count <= 0) return server_.drop(*this);
    }
    again(kReadable);
  }

  void again(uint32_t events) { server_.runtime_.poller().change(poll_id_, socket_.get(), events); }

  MetricsServer& server_;
  const FileDescriptor socket_;
  uint64_t poll_id_ = Poller::kNotAdded;
  std::string request_, answer_;
  size_t sent_ = 0;
};

MetricsServer::MetricsServer(RealRuntime& runtime, MetricsServerOptions options,
                             std::function<std::string()> page)
    : runtime_(runtime), options_(std::move(options)), page_(std::move(page)) {
  listener_ = std::make_shared<Listener>(*this, listen_on(options_.address).or_throw());
  address_ = local_address(listener_->socket());
  listening_id_ = runtime_.poller().add(listener_->socket().get(), 0, listener_);
  if (listening_id_ == Poller::kNotAdded) throw RpcError(watch_error());
}

MetricsServer::~MetricsServer() {
  // The runtime's strand rests: this is the only thread that is here.
  runtime_.post([this] { stop(); });
}

void MetricsServer::start() {
  if (listening_id_ == Poller::kNotAdded) return;  // It has stopped.
  runtime_.poller().change(listening_id_, listener_->socket().get(), kReadable);
}

void MetricsServer::stop() {
  if (listening_id_ != Poller::kNotAdded)
    runtime_.poller().remove(std::exchange(listening_id_, Poller::kNotAdded),
                             listener_->socket().get());
  listener_.reset();
  while (!exchanges_.empty()) drop(*exchanges_.front().exchange);
}

void MetricsServer::on_connections() {
  if (listening_id_ == Poller::kNotAdded) return;
  const int fd = listener_->socket().get();
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    FileDescriptor socket(accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const int error = errno;
    if (socket.valid()) {
      add(std::move(socket));
      continue;
    }
    if (error == EINTR || error == ECONNABORTED) continue;
    if (error == EAGAIN || error == EWOULDBLOCK) break;
    // No descriptor is left: what waits is accepted when there may be one again.
    runtime_.call_at(runtime_.now() + kListeningPause, [this] { on_connections(); });
    return;
  }
  runtime_.poller().change(listening_id_, fd, kReadable);
}

void MetricsServer::add(FileDescriptor socket) {
  auto exchange = std::make_shared<Exchange>(*this, std::move(socket));
  if (!exchange->open()) return;
  if (exchanges_.size() >= options_.connections_max) drop(*exchanges_.front().exchange);
  const TimerId deadline = runtime_.call_at(runtime_.now() + options_.time_limit,
                                            [this, raw = exchange.get()] { drop(*raw); });
  exchanges_.push_back({std::move(exchange), deadline});
}

void MetricsServer::drop(const Exchange& exchange) {
  const auto found = std::find_if(exchanges_.begin(), exchanges_.end(), [&](const Entry& entry) {
    return entry.exchange.get() == &exchange;
  });
  if (found == exchanges_.end()) return;
  runtime_.cancel(found->deadline);
  const std::shared_ptr<Exchange> dropped = std::move(found->exchange);
  exchanges_.erase(found);
  dropped->close();
}

}  // namespace rehearsal::real
