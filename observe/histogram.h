#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"

namespace rehearsal::observe {

// How long things took: a count for each of a fixed number of buckets. The first one holds what
// took 10 µs or less, each further one twice as much; the last bucket has no bound.
class Histogram {
 public:
  static constexpr size_t kBounds = 24;  // the last is 83.9 s

  // The most that a thing in this bucket took. REQUIRES: bucket < kBounds.
  [[nodiscard]] static constexpr Duration bound(size_t bucket) {
    return std::chrono::microseconds(int64_t{10} << bucket);
  }

  // A negative length counts as none.
  void add(Duration length) {
    if (length.count() < 0) length = Duration(0);
    size_t bucket = 0;
    while (bucket < kBounds && length > bound(bucket)) ++bucket;
    ++counts_[bucket];
    ++count_;
    sum_ += length;
  }

  // How many are in this bucket alone. REQUIRES: bucket <= kBounds.
  [[nodiscard]] uint64_t count_of(size_t bucket) const { return counts_[bucket]; }
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] Duration sum() const { return sum_; }

  bool operator==(const Histogram&) const = default;

 private:
  std::array<uint64_t, kBounds + 1> counts_{};
  uint64_t count_ = 0;
  Duration sum_{};
};

}  // namespace rehearsal::observe
