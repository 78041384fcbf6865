#include "sim/world/local_clock.h"

#include "core/base/check.h"

namespace rehearsal::sim {
namespace {

constexpr int64_t kWhole = 1'000'000;

// Beyond this an instant means "never".
constexpr Instant kNever = Instant(Duration(INT64_MAX / 2));

// number * factor / whole, towards zero, where the product may not fit.
// REQUIRES: number >= 0; the result fits, and so does whole * factor.
int64_t part(int64_t number, int64_t factor, int64_t whole) {
  return number / whole * factor + number % whole * factor / whole;
}

}  // namespace

Instant LocalClock::local(Instant virtual_time) const {
  const int64_t passed = virtual_time.time_since_epoch().count();
  return virtual_time + offset + jumped_ + Duration(part(passed, drift_millionths, kWhole));
}

Instant LocalClock::virtual_time(Instant shown) const {
  if (shown > kNever) return shown;
  const Duration wanted = shown.time_since_epoch() - offset - jumped_;
  if (wanted.count() <= 0) return Instant{};
  Instant guess{Duration(part(wanted.count(), kWhole, kWhole + drift_millionths))};
  while (local(guess) < shown) guess += Duration(1);
  while (guess > Instant{} && local(guess - Duration(1)) >= shown) guess -= Duration(1);
  return guess;
}

void LocalClock::jump(Duration by) {
  REHEARSAL_CHECK(by.count() > 0, by.count());
  jumped_ += by;
}

}  // namespace rehearsal::sim
