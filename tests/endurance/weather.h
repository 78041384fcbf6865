#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/ids.h"
#include "tests/real_net/support/fault_proxy.h"

namespace rehearsal::endurance {

// Bad weather on the way to several workers: connections are reset, half-closed, delayed, held up
// and refused, for a while each. The order, place and length of the faults follow from a seed; when
// the threads get to them does not. The proxies outlive it, and are left as they were made.
class Weather {
 public:
  // `calm_max`: between one thing and the next.
  Weather(std::vector<real::FaultProxy*> proxies, Seed seed, Duration calm_max);
  ~Weather();
  Weather(const Weather&) = delete;
  Weather& operator=(const Weather&) = delete;

  // How often a connection was broken or could be: after the end, or while it goes on.
  [[nodiscard]] uint64_t breaks() const { return breaks_; }

 private:
  void run();
  void step(uint64_t word);
  // False when it is over.
  bool wait(Duration time);

  const std::vector<real::FaultProxy*> proxies_;
  const Seed seed_;
  const Duration calm_max_;
  std::atomic<uint64_t> breaks_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace rehearsal::endurance
