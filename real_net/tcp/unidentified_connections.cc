#include "real_net/tcp/unidentified_connections.h"

#include <algorithm>

namespace rehearsal::real {
namespace {

constexpr size_t kStrangersMax = 256;

}  // namespace

void UnidentifiedConnections::add(FileDescriptor socket) {
  auto connection = Connection::make(context_, std::move(socket), *this, /*connecting=*/false);
  if (connection == nullptr) return;
  if (entries_.size() >= kStrangersMax) drop(*entries_.front().connection);
  Runtime& runtime = *context_.runtime;
  const TimerId deadline =
      runtime.call_at(runtime.now() + time_limit_, [this, raw = connection.get()] { drop(*raw); });
  entries_.push_back({connection, deadline});
  connection->expect_handshake();
}

void UnidentifiedConnections::drop_all() {
  while (!entries_.empty()) drop(*entries_.front().connection);
}

void UnidentifiedConnections::on_handshake(Connection& connection, Handshake hello) {
  std::shared_ptr<Connection> known = take(connection);
  if (known != nullptr) on_hello_(std::move(known), std::move(hello));
}

std::shared_ptr<Connection> UnidentifiedConnections::take(Connection& connection) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.connection.get() == &connection;
  });
  if (found == entries_.end()) return nullptr;
  context_.runtime->cancel(found->deadline);
  std::shared_ptr<Connection> taken = std::move(found->connection);
  entries_.erase(found);
  return taken;
}

void UnidentifiedConnections::drop(Connection& connection) {
  const std::shared_ptr<Connection> taken = take(connection);
  if (taken != nullptr) taken->abort();
}

}  // namespace rehearsal::real
