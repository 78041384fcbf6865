#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/transport.h"
#include "tests/core/test_runtime.h"

namespace rehearsal::doubles {

class ScriptedNetwork;

// One worker's end of a ScriptedNetwork.
class ScriptedTransport final : public Transport {
 public:
  ScriptedTransport(ScriptedNetwork& network, WorkerId self) : network_(network), self_(self) {}

  void open(WorkerId peer) override { opened_.insert(peer); }
  void send(WorkerId peer, Frame frame) override;
  void send_on(WorkerId) override {}
  void break_link(WorkerId peer, const Error& why) override;
  void close(WorkerId peer, const Error& reason) override;
  uint64_t queued_bytes(WorkerId) const override { return 0; }
  void stop() override { stopped_ = true; }

  [[nodiscard]] bool opened(WorkerId peer) const { return opened_.contains(peer); }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] const std::map<WorkerId, Error>& closed() const { return closed_; }

 private:
  friend class ScriptedNetwork;
  ScriptedNetwork& network_;
  const WorkerId self_;
  TestRuntime* runtime_ = nullptr;
  FrameSink* sink_ = nullptr;
  Hello hello_;
  bool stopped_ = false;
  std::set<WorkerId> opened_;
  std::map<WorkerId, Error> closed_;
};

// A network whose every delivery the test decides: what is sent lies in flight until it is
// delivered, in any order, or lost by a cut. A link of two workers is up between `connect` and
// `cut` or `close`. Payloads are copied at delivery, as a network does.
class ScriptedNetwork {
 public:
  struct InFlight {
    WorkerId from;
    WorkerId to;
    Frame frame;
    bool is_close = false;  // then `why` arrives instead of a frame
    Error why;
  };

  explicit ScriptedNetwork(uint32_t workers) {
    for (uint32_t id = 0; id < workers; ++id)
      ends_.push_back(std::make_unique<ScriptedTransport>(*this, WorkerId{id}));
  }

  [[nodiscard]] ScriptedTransport& end(uint32_t worker) { return *ends_[worker]; }

  // Set the receiver of reports: a worker's life begins.
  void attach(uint32_t worker, TestRuntime& runtime, FrameSink& sink, Hello hello) {
    ScriptedTransport& end = *ends_[worker];
    end.runtime_ = &runtime;
    end.sink_ = &sink;
    end.hello_ = std::move(hello);
    end.stopped_ = false;
    end.opened_.clear();
    end.closed_.clear();
  }

  void connect(uint32_t a, uint32_t b) {
    up_.insert(std::minmax(a, b));
    const Hello of_a = hello(a, b);
    const Hello of_b = hello(b, a);
    report(a, [&](FrameSink& sink) { sink.on_peer_up(of_b); });
    report(b, [&](FrameSink& sink) { sink.on_peer_up(of_a); });
  }
  // The link is lost before the other end, b, hears of it.
  void connect_one_end(uint32_t a, uint32_t b) {
    up_.insert(std::minmax(a, b));
    const Hello of_b = hello(b, a);
    report(a, [&](FrameSink& sink) { sink.on_peer_up(of_b); });
  }
  void connect_all() {
    for (uint32_t a = 0; a < ends_.size(); ++a)
      for (uint32_t b = a + 1; b < ends_.size(); ++b) connect(a, b);
  }

  // `from` says this of itself when a link to `to` is made.
  [[nodiscard]] Hello hello(uint32_t from, uint32_t to) const {
    const ScriptedTransport& end = *ends_[from];
    Hello hello = end.hello_;
    if (!end.stopped_ && end.sink_ != nullptr) hello.position = end.sink_->position(WorkerId{to});
    return hello;
  }

  // The link is lost with all that is in flight on it.
  void cut(uint32_t a, uint32_t b) {
    if (up_.erase(std::minmax(a, b)) == 0) return;
    lose(a, b);
    const Error why{.kind = ErrorKind::peer_lost, .text = "cut"};
    report(a, [&](FrameSink& sink) { sink.on_peer_lost(WorkerId{b}, why, false); });
    report(b, [&](FrameSink& sink) { sink.on_peer_lost(WorkerId{a}, why, false); });
  }
  [[nodiscard]] bool is_up(uint32_t a, uint32_t b) const { return up_.contains(std::minmax(a, b)); }

  [[nodiscard]] const std::deque<InFlight>& in_flight() const { return in_flight_; }

  // Delivers what lies at this place; the rest keeps its order.
  void deliver(size_t at) {
    const InFlight item = take(at);
    if (item.is_close) {
      report(item.to.value, [&](FrameSink& sink) { sink.on_peer_lost(item.from, item.why, true); });
    } else {
      report(item.to.value, [&](FrameSink& sink) { sink.on_frame(item.from, copy(item.frame)); });
    }
  }
  bool deliver_first() {
    if (in_flight_.empty()) return false;
    deliver(0);
    return true;
  }
  void deliver_all() {
    while (deliver_first()) {
    }
  }
  // Takes an item out, to be put back later: it is delayed.
  [[nodiscard]] InFlight take(size_t at) {
    REHEARSAL_CHECK(at < in_flight_.size(), at, in_flight_.size());
    InFlight item = std::move(in_flight_[at]);
    in_flight_.erase(in_flight_.begin() + static_cast<ptrdiff_t>(at));
    return item;
  }
  void put(InFlight item) { in_flight_.push_back(std::move(item)); }

 private:
  friend class ScriptedTransport;

  void lose(uint32_t a, uint32_t b) {
    std::erase_if(in_flight_, [&](const InFlight& item) {
      return std::minmax(item.from.value, item.to.value) == std::minmax(a, b) && !item.is_close;
    });
  }

  template <class F>
  void report(uint32_t worker, F report) {
    ScriptedTransport& end = *ends_[worker];
    if (end.stopped_ || end.sink_ == nullptr) return;
    end.runtime_->post([&end, &report] { report(*end.sink_); });
  }

  static Frame copy(const Frame& frame) {
    if (!frame.body) return frame;
    auto body = std::make_shared<FrameBody>();
    body->envelope = frame.body->envelope;
    for (const Segment& segment : frame.body->segments) {
      std::shared_ptr<void> owner(std::aligned_alloc(64, (segment.bytes + 63) / 64 * 64),
                                  &std::free);
      std::memcpy(owner.get(), segment.data, segment.bytes);
      auto* data = static_cast<std::byte*>(owner.get());
      body->segments.push_back({std::move(owner), data, segment.bytes, segment.use});
    }
    return {.header = frame.header, .body = std::move(body)};
  }

  std::vector<std::unique_ptr<ScriptedTransport>> ends_;
  std::set<std::pair<uint32_t, uint32_t>> up_;
  std::deque<InFlight> in_flight_;
};

inline void ScriptedTransport::send(WorkerId peer, Frame frame) {
  if (stopped_ || !network_.is_up(self_.value, peer.value)) return;
  network_.in_flight_.push_back({self_, peer, std::move(frame), false, {}});
}

inline void ScriptedTransport::break_link(WorkerId peer, const Error&) {
  network_.cut(self_.value, peer.value);
}

inline void ScriptedTransport::close(WorkerId peer, const Error& reason) {
  closed_[peer] = reason;
  if (network_.up_.erase(std::minmax(self_.value, peer.value)) == 0) return;
  network_.in_flight_.push_back({self_, peer, {}, true, reason});
}

}  // namespace rehearsal::doubles
