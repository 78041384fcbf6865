#include "real_net/tcp/lingering_connections.h"

#include <algorithm>

namespace rehearsal::real {

void LingeringConnections::add(std::shared_ptr<Connection> connection) {
  if (connection->aborted()) return;
  Runtime& runtime = *context_.runtime;
  Connection& leaving = *connection;
  const TimerId deadline =
      runtime.call_at(runtime.now() + time_limit_, [this, raw = &leaving] { drop(*raw); });
  entries_.push_back({std::move(connection), deadline});
  leaving.set_owner(*this);
  leaving.expect_end();
  leaving.end_output();
}

void LingeringConnections::drop_all() {
  while (!entries_.empty()) drop(*entries_.front().connection);
}

void LingeringConnections::when_empty(Task done) {
  when_empty_ = std::move(done);
  check_empty();
}

// The bytes in the writer are still sent: the peer may have ended its side only.
void LingeringConnections::on_end(Connection& connection, std::optional<Error>) {
  const auto found = find(connection);
  if (found == entries_.end()) return;
  found->peer_ended = true;
  on_written(connection);
}

void LingeringConnections::on_written(Connection& connection) {
  const auto found = find(connection);
  if (found != entries_.end() && found->peer_ended && connection.writer().empty()) drop(connection);
}

std::list<LingeringConnections::Entry>::iterator LingeringConnections::find(
    const Connection& connection) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.connection.get() == &connection; });
}

void LingeringConnections::drop(Connection& connection) {
  const auto found = find(connection);
  if (found == entries_.end()) return;
  context_.runtime->cancel(found->deadline);
  const std::shared_ptr<Connection> taken = std::move(found->connection);
  entries_.erase(found);
  taken->abort();
  check_empty();
}

void LingeringConnections::check_empty() {
  if (!entries_.empty() || !when_empty_) return;
  Task done = std::move(when_empty_);
  when_empty_ = nullptr;
  done();
}

}  // namespace rehearsal::real
