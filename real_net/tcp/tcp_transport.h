#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "real_net/runtime/real_runtime.h"
#include "real_net/tcp/lingering_connections.h"
#include "real_net/tcp/tcp_link.h"
#include "real_net/tcp/unidentified_connections.h"

namespace rehearsal::real {

// A Transport over TCP. Each link is two connections; see TcpLink. Connections that others make are
// known by their hello; one that says nothing sensible in time is closed, and there are never more
// than a bounded number of them. The buffer pool, the runtime and the sink outlive the transport,
// which is destroyed when the runtime has stopped.
class TcpTransport final : public Transport, private LinkHost {
 public:
  TcpTransport(RealRuntime& runtime, BufferPool& pool, TransportOptions options);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  // Binds; connections are taken from `start` on. Port 0: any free one. Before `start`. The error
  // is of kind overloaded if the kernel has no room to watch the socket.
  [[nodiscard]] Status listen(const Address& address);
  // Where it listens, or did.
  [[nodiscard]] const Address& address() const { return address_; }

  // Where peers are told to connect to.
  [[nodiscard]] Address reached_at() const override;

  // Sets the identity of this end and the sink of what arrives. Before the first `open`; on the
  // strand. One that has been stopped already does not listen.
  void start(Hello hello, FrameSink& sink);
  // Where a peer listens; also when it has moved. On the strand.
  void set_address(WorkerId peer, Address address);

  void open(WorkerId peer) override;
  void send(WorkerId peer, Frame frame) override;
  void send_on(WorkerId peer) override;
  void break_link(WorkerId peer, const Error& why) override;
  void close(WorkerId peer, const Error& reason) override;
  [[nodiscard]] uint64_t queued_bytes(WorkerId peer) const override;
  void stop() override;

  // Runs `done` on the strand when a stopped transport has closed its last connection. After
  // `stop`, on the strand.
  void when_stopped(Task done);

  // As a crash does: every connection is cut at once. On the strand.
  void abort();

  struct Census {
    uint64_t reads = 0;       // system calls so far
    uint64_t writes = 0;      // the same
    size_t unidentified = 0;  // connections that have not said who they are
    size_t leaving = 0;       // connections whose last words are being sent
  };
  [[nodiscard]] Census census() const;

 private:
  class Listener;

  const TransportOptions& options() const override { return options_; }
  const Hello& hello() const override { return hello_; }
  ConnectionContext& context() override { return context_; }
  FrameSink& sink() override { return *sink_; }
  void look_up(WorkerId peer, const Address& address, NameLookup::Done done) override {
    names_.find(peer, address, std::move(done));
  }
  bool believes(const Connection& connection, WorkerId worker) override;
  void mark_dirty(TcpLink& link) override;
  void on_change(const TcpLink& link) override;
  void see_off(std::shared_ptr<Connection> connection) override;
  void see_off_answer(std::shared_ptr<Connection> connection) override;

  void flush();
  void on_accepted(FileDescriptor socket);
  void pause_listening(int error);
  [[nodiscard]] bool is_for_us(const Handshake& hello) const;
  [[nodiscard]] bool may_link(const Handshake& hello) const;
  void on_hello(std::shared_ptr<Connection> connection, Handshake hello);
  void answer(std::shared_ptr<Connection> connection, const Handshake& hello, HandshakeKind kind,
              std::string text);
  [[nodiscard]] Error of_another_run() const;
  [[nodiscard]] TcpLink& link(WorkerId peer);
  void stop_listening();

  RealRuntime& runtime_;
  const TransportOptions options_;
  ConnectionContext context_;
  Hello hello_;
  FrameSink* sink_ = nullptr;
  bool ended_ = false;

  Address address_;
  std::shared_ptr<Listener> listener_;
  uint64_t listening_id_ = Poller::kNotAdded;
  NameLookup names_;
  UnidentifiedConnections unidentified_;
  LingeringConnections lingering_;
  std::map<WorkerId, Address> addresses_;
  std::map<WorkerId, std::unique_ptr<TcpLink>> links_;
  std::vector<TcpLink*> dirty_;
  std::set<const TcpLink*> beside_;  // links to workers on this machine
};

}  // namespace rehearsal::real
