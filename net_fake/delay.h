#pragma once

#include <cstdint>
#include <string>

#include "core/base/time.h"

namespace rehearsal::net_fake {

// For people: "1.5 ms".
[[nodiscard]] std::string text_of(Duration duration);

// A distribution of delays, sampled by integer arithmetic only: the same on every machine.
class Delay {
 public:
  // Draws are numbers in [0, kDraws); draw 0 gives the least delay.
  static constexpr uint64_t kDraws = uint64_t{1} << 32;

  [[nodiscard]] static Delay constant(Duration delay);
  [[nodiscard]] static Delay uniform(Duration min, Duration max);

  // `min` and, beyond it, an exponential tail of this mean (cut off at 22 means).
  [[nodiscard]] static Delay exponential(Duration min, Duration mean_beyond);

  // Uniform in [min, max], but with this probability in millionths uniform in [slow_min, slow_max].
  struct Slow {
    Duration min{};
    Duration max{};
    uint64_t millionths = 0;
  };
  [[nodiscard]] static Delay bimodal(Duration min, Duration max, Slow slow);

  [[nodiscard]] bool is_constant() const { return shape_ == Shape::constant; }
  [[nodiscard]] Duration min() const { return min_; }
  [[nodiscard]] Duration sample(uint64_t draw) const;

  // The same shape, but with nothing beyond `longest`.
  [[nodiscard]] Delay bounded(Duration longest) const;

  // For people: "50 µs to 200 µs".
  [[nodiscard]] std::string describe() const;

 private:
  enum class Shape : uint8_t { constant, uniform, exponential, bimodal };

  Shape shape_ = Shape::constant;
  Duration min_{};
  Duration span_{};  // max − min, or the mean beyond min
  Slow slow_{};
};

}  // namespace rehearsal::net_fake
