#pragma once

#include <cstdint>
#include <vector>

#include "core/base/buffer_pool.h"
#include "core/base/ring.h"
#include "core/base/runtime.h"
#include "core/base/transport.h"
#include "net_fake/decisions.h"

namespace rehearsal::net_fake {

class Link;
class Network;

// One life of a worker on the simulated network. Each report of the network enters the strand of
// the life's Runtime as a task of its own. Outlives everything that is scheduled for it: the
// network lets go of it at `stop` and `crash`.
class FakeTransport final : public Transport {
 public:
  struct Options {
    uint32_t life = 0;
    Runtime* runtime = nullptr;
    BufferPool* pool = nullptr;
  };

  FakeTransport(Network& network, WorkerId worker, Options options);
  ~FakeTransport() override;
  FakeTransport(const FakeTransport&) = delete;
  FakeTransport& operator=(const FakeTransport&) = delete;

  // Before the first `open`: who this is and who hears of what arrives.
  void start(Hello hello, FrameSink& sink);

  void open(WorkerId peer) override;
  void send(WorkerId peer, Frame frame) override;
  void send_on(WorkerId peer) override;
  void break_link(WorkerId peer, const Error& why) override;
  void close(WorkerId peer, const Error& reason) override;
  uint64_t queued_bytes(WorkerId peer) const override;
  void stop() override;

  // The worker is gone at once: nothing it does has any effect, nothing is reported to it, and its
  // peers hear of it late or not at all.
  void crash();

  [[nodiscard]] const Hello& hello() const { return hello_; }
  // Given to `peer` when a link to it is made.
  [[nodiscard]] Hello hello_to(WorkerId peer) const;
  [[nodiscard]] LifeId life() const { return life_; }
  [[nodiscard]] BufferPool& pool() const { return *options_.pool; }
  [[nodiscard]] bool ended() const { return ended_; }

  // For the network: reports, each on the strand.
  void report_up(Hello&& hello);
  void report_frame(WorkerId peer, Frame&& frame);
  void report_lost(WorkerId peer, const Error& why, bool closed_by_peer);
  void report_drained(WorkerId peer);
  void report_refused(WorkerId peer, const Refusals& refusals);

 private:
  struct Arrival {
    WorkerId peer;
    Frame frame;
  };
  [[nodiscard]] Link* link_to(WorkerId peer) const;

  Network& network_;
  const LifeId life_;
  const Options options_;
  Hello hello_;
  FrameSink* sink_ = nullptr;
  std::vector<Link*> links_;  // by worker; null where nothing was opened yet
  Ring<Arrival> arrivals_;    // posted to the strand and not yet taken there
  bool ended_ = false;
};

}  // namespace rehearsal::net_fake
