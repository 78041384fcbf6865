#include "tests/endurance/weather.h"

#include "core/base/hash.h"

namespace rehearsal::endurance {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

void clear(real::FaultProxy& proxy) {
  proxy.set_delay(Duration::zero());
  proxy.set_refusing(false);
  proxy.set_reset_after(0);
  proxy.set_hold_after(0);
  proxy.set_stalled(false);
}

}  // namespace

Weather::Weather(std::vector<real::FaultProxy*> proxies, Seed seed, Duration calm_max)
    : proxies_(std::move(proxies)), seed_(seed), calm_max_(calm_max) {
  thread_ = std::thread([this] { run(); });
}

Weather::~Weather() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool Weather::wait(Duration time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return over_; });
}

void Weather::run() {
  const auto calm = [this](uint64_t count) {
    const auto limit = static_cast<uint64_t>(calm_max_.count());
    return Duration(static_cast<int64_t>(mix(seed_.value, 2 * count) % limit));
  };
  for (uint64_t count = 0; wait(calm(count)); ++count) step(mix(seed_.value, 2 * count + 1));
  for (real::FaultProxy* proxy : proxies_) clear(*proxy);
}

void Weather::step(uint64_t word) {
  real::FaultProxy& proxy = *proxies_[word % proxies_.size()];
  const Duration time = milliseconds(1 + mix(word, 1) % 40);
  switch (mix(word, 2) % 8) {
    case 0:
    case 1:
      proxy.reset_all();
      break;
    case 2:
      proxy.half_close_all();
      break;
    case 3:
      proxy.set_refusing(true);
      proxy.reset_all();
      wait(time);
      break;
    case 4:
      proxy.set_stalled(true);
      wait(time);
      break;
    case 5:
      proxy.set_delay(microseconds(100 + mix(word, 3) % 5'000));
      return;  // until it is this proxy's turn again
    case 6:
      proxy.set_reset_after(2'000 + mix(word, 3) % 200'000);
      return;
    default:
      break;
  }
  ++breaks_;
  clear(proxy);
}

}  // namespace rehearsal::endurance
