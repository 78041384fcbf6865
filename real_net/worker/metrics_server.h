#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "real_net/runtime/real_runtime.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {

struct MetricsServerOptions {
  Address address{.host = "127.0.0.1", .port = 0};  // port 0: any free one
  Duration time_limit = std::chrono::seconds(5);    // for a request and its answer
  size_t connections_max = 16;                      // one more pushes out the oldest
};

// Answers GET /metrics over HTTP, for a Prometheus server to scrape. It has no thread: whoever
// polls the network sees that bytes have come, and the strand reads, answers and closes. There is
// no encryption and no authentication.
class MetricsServer {
 public:
  // Listens; answers from `start` on. `page` is called on the strand. Throws RpcError if the
  // address cannot be listened on, or the kernel has no room to watch another socket. The runtime
  // outlives the server, which is destroyed when the runtime has stopped.
  MetricsServer(RealRuntime& runtime, MetricsServerOptions options,
                std::function<std::string()> page);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  [[nodiscard]] const Address& address() const { return address_; }

  // On the strand.
  void start();
  void stop();
  [[nodiscard]] size_t connections() const { return exchanges_.size(); }

 private:
  class Listener;
  class Exchange;
  struct Entry {
    std::shared_ptr<Exchange> exchange;
    TimerId deadline;
  };

  void on_connections();
  void add(FileDescriptor socket);
  void drop(const Exchange& exchange);

  RealRuntime& runtime_;
  const MetricsServerOptions options_;
  const std::function<std::string()> page_;
  std::shared_ptr<Listener> listener_;  // null: it has stopped
  Address address_;
  uint64_t listening_id_ = Poller::kNotAdded;
  std::list<Entry> exchanges_;  // the oldest first
};

}  // namespace rehearsal::real
