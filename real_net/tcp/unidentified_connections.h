#pragma once

#include <functional>
#include <list>
#include <memory>

#include "real_net/tcp/connection.h"

namespace rehearsal::real {

// Connections that have been accepted and have not said who they are. Each has a limited time for
// that, and there is a bounded number of them: one more pushes out the oldest. On the strand.
class UnidentifiedConnections final : public ConnectionOwner {
 public:
  using OnHello = std::function<void(std::shared_ptr<Connection>, Handshake)>;

  UnidentifiedConnections(ConnectionContext& context, Duration time_limit, OnHello on_hello)
      : context_(context), time_limit_(time_limit), on_hello_(std::move(on_hello)) {}

  void add(FileDescriptor socket);
  void drop_all();
  [[nodiscard]] size_t size() const { return entries_.size(); }

  void on_connected(Connection&) override {}
  void on_frames(Connection&, std::vector<Frame>) override {}
  void on_written(Connection&) override {}
  void on_end(Connection& connection, std::optional<Error>) override { drop(connection); }
  void on_broken(Connection& connection, const Error&) override { drop(connection); }
  void on_handshake(Connection& connection, Handshake hello) override;

 private:
  struct Entry {
    std::shared_ptr<Connection> connection;
    TimerId deadline;
  };

  [[nodiscard]] std::shared_ptr<Connection> take(Connection& connection);
  void drop(Connection& connection);

  ConnectionContext& context_;
  const Duration time_limit_;
  const OnHello on_hello_;
  std::list<Entry> entries_;
};

}  // namespace rehearsal::real
