#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "real_net/runtime/real_runtime.h"
#include "real_net/tcp/slab_pool.h"
#include "real_net/tcp/tcp_transport.h"
#include "tests/conformance/recording_sink.h"
#include "tests/real_net/support/fault_proxy.h"

namespace rehearsal::real {

// The calling thread waits in the runtime until `holds`, or for a minute; whether it held.
inline bool wait_until(RealRuntime& runtime, const std::function<bool()>& holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    Waiter waiter;
    runtime.post([&] {
      runtime.call_at(runtime.now() + std::chrono::microseconds(500),
                      [&] { runtime.wake(waiter); });
    });
    if (runtime.park(waiter) != ParkOutcome::woken)
      std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return true;
}

// Runs `task` on the strand and returns when it has run.
inline void run_on(RealRuntime& runtime, Task task) {
  Waiter waiter;
  runtime.post([&] {
    task();
    runtime.wake(waiter);
  });
  REHEARSAL_CHECK(runtime.park(waiter) == ParkOutcome::woken);
}

// One life of a worker's network.
struct TcpEnd {
  explicit TcpEnd(WorkerId worker, uint64_t life, const TransportOptions& options)
      : runtime({.worker_threads = 1}), transport(runtime, pool, options) {
    transport.listen({.host = "127.0.0.1", .port = 0}).or_throw();
    hello = {worker, {1000 + 10 * worker.value + life}, "worker " + std::to_string(worker.value)};
    run_on(runtime, [this] { transport.start(hello, sink); });
  }
  ~TcpEnd() { end(); }

  // As a crash does.
  void end() {
    if (ended) return;
    ended = true;
    run_on(runtime, [this] { transport.abort(); });
    runtime.stop();
  }

  bool ended = false;
  Hello hello;
  conformance::RecordingSink sink;
  SlabPool pool;
  RealRuntime runtime;
  TcpTransport transport;
};

// Two workers, each of which reaches the other through a proxy.
class TcpWorld {
 public:
  static TransportOptions quick_options() {
    TransportOptions options;
    options.back_off = {.min = std::chrono::milliseconds(2), .max = std::chrono::milliseconds(20)};
    options.patience = std::chrono::milliseconds(40);
    return options;
  }

  // With credentials, both ends have to prove that they belong together.
  explicit TcpWorld(std::shared_ptr<Credentials> credentials = nullptr)
      : credentials_(std::move(credentials)) {
    for (FaultProxy& proxy : proxies_) proxy.set_corruption(corrupt_next_);
    for (const int end : {0, 1}) start(end);
    for (const int end : {0, 1}) tell_address(end);
  }
  ~TcpWorld() {
    for (auto& end : ends_) end->end();
  }

  TcpTransport& transport(int end) { return ends_[index(end)]->transport; }
  conformance::RecordingSink& sink(int end) { return ends_[index(end)]->sink; }
  RealRuntime& runtime(int end) { return ends_[index(end)]->runtime; }
  FaultProxy& proxy_to(int end) { return proxies_[index(end)]; }
  Hello hello(int end) { return ends_[index(end)]->hello; }

  void run(int end, Task task) { run_on(runtime(end), std::move(task)); }
  bool advance_until(const std::function<bool()>& holds) { return wait_until(runtime(0), holds); }
  void advance(Duration time) { std::this_thread::sleep_for(time); }

  void reset_link() {
    for (FaultProxy& proxy : proxies_) proxy.reset_all();
  }
  void set_blocked(bool blocked) {
    for (FaultProxy& proxy : proxies_) proxy.set_stalled(blocked);
  }
  void set_refusing(bool refusing) {
    for (FaultProxy& proxy : proxies_) proxy.set_refusing(refusing);
  }
  void corrupt_next() { corrupt_next_ = true; }
  void crash(int end) {
    ends_[index(end)]->end();
    proxies_[index(end)].set_target(0);
  }
  void restart(int end) {
    ended_.push_back(std::move(ends_[index(end)]));
    start(end);
    tell_address(end);
  }
  uint64_t segments_taken(int end) { return ends_[index(end)]->pool.census().taken; }

 private:
  static size_t index(int end) { return static_cast<size_t>(end); }

  void start(int end) {
    TransportOptions options = quick_options();
    options.advertise = Address{.host = "127.0.0.1", .port = proxies_[index(end)].port()};
    options.credentials = credentials_;
    ends_[index(end)] =
        std::make_unique<TcpEnd>(WorkerId{static_cast<uint32_t>(end)}, ++lives_, options);
    proxies_[index(end)].set_target(transport(end).address().port);
  }
  void tell_address(int end) {
    run(end, [this, end] {
      transport(end).set_address(WorkerId{static_cast<uint32_t>(1 - end)},
                                 {.host = "127.0.0.1", .port = proxies_[index(1 - end)].port()});
    });
  }

  const std::shared_ptr<Credentials> credentials_;
  uint64_t lives_ = 0;
  std::atomic<bool> corrupt_next_{false};
  std::array<FaultProxy, 2> proxies_;  // [end]: on the way to that end
  std::array<std::unique_ptr<TcpEnd>, 2> ends_;
  std::vector<std::unique_ptr<TcpEnd>> ended_;  // tests may still hold their sinks
};

inline std::shared_ptr<Credentials> with_secret(const std::string& secret,
                                                Protection protection = Protection::tls) {
  return Credentials::make(
             {.kind = Auth::Kind::secret, .secret = secret, .files = {}, .protection = protection})
      .or_throw();
}

// The same two workers under TLS.
class SecretTcpWorld : public TcpWorld {
 public:
  SecretTcpWorld() : TcpWorld(with_secret("a secret of this test")) {}
};

// The same with records that can be read and not changed.
class MacTcpWorld : public TcpWorld {
 public:
  MacTcpWorld() : TcpWorld(with_secret("a secret of this test", Protection::mac)) {}
};

}  // namespace rehearsal::real
