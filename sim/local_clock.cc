#include "sim/local_clock.h"

#include "core/base/check.h"

namespace rehearsal::sim {
namespace {

constexpr int64_t kWhole = 1'000'000;

// Beyond this an instant means "never".
constexpr Instant kNever = Instant(Duration(INT64_MAX / 2));

}  // namespace

Instant LocalClock::local(Instant virtual_time) const {
  const int64_t passed = virtual_time.time_since_epoch().count();
  const auto drifted = static_cast<__int128>(passed) * drift_millionths / kWhole;
  return virtual_time + offset + jumped_ + Duration(static_cast<int64_t>(drifted));
}

Instant LocalClock::virtual_time(Instant shown) const {
  if (shown > kNever) return shown;
  const Duration wanted = shown.time_since_epoch() - offset - jumped_;
  if (wanted.count() <= 0) return Instant{};
  const auto passed = static_cast<__int128>(wanted.count()) * kWhole / (kWhole + drift_millionths);
  Instant guess{Duration(static_cast<int64_t>(passed))};
  while (local(guess) < shown) guess += Duration(1);
  while (guess > Instant{} && local(guess - Duration(1)) >= shown) guess -= Duration(1);
  return guess;
}

void LocalClock::jump(Duration by) {
  REHEARSAL_CHECK(by.count() > 0, by.count());
  jumped_ += by;
}

}  // namespace rehearsal::sim
