#pragma once

#include <list>
#include <memory>

#include "real_net/tcp/connection.h"

namespace rehearsal::real {

// Connections whose last words are being sent. Each stays until the peer has hung up, too, so that
// nothing that the peer still sends makes the system throw our last words away; but not for longer
// than a limit. On the strand.
class LingeringConnections final : public ConnectionOwner {
 public:
  LingeringConnections(ConnectionContext& context, Duration time_limit)
      : context_(context), time_limit_(time_limit) {}

  void add(std::shared_ptr<Connection> connection);
  void drop_all();
  [[nodiscard]] size_t size() const { return entries_.size(); }

  // Runs `done` as soon as there are none.
  void when_empty(Task done);

  void on_connected(Connection&) override {}
  void on_frames(Connection&, std::vector<Frame>) override {}
  void on_handshake(Connection&, Handshake) override {}
  void on_broken(Connection& connection, const Error&) override { drop(connection); }
  void on_end(Connection& connection, std::optional<Error>) override;
  void on_written(Connection& connection) override;

 private:
  struct Entry {
    std::shared_ptr<Connection> connection;
    TimerId deadline;
    bool peer_ended = false;
  };

  [[nodiscard]] std::list<Entry>::iterator find(const Connection& connection);
  void drop(Connection& connection);
  void check_empty();

  ConnectionContext& context_;
  const Duration time_limit_;
  std::list<Entry> entries_;
  Task when_empty_;
};

}  // namespace rehearsal::real
