#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "core/base/time.h"

namespace rehearsal::real {

// How long a worker waits for others, and when it says so: silence for as long as it has patience
// would look like work. One thread.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  // Is given "has waited 5 s, of 300 s at most, for …".
  using Tell = std::function<void(const std::string&)>;

  // Begins to wait now. `first_word`: when it says so for the first time. `tell` may be null.
  Patience(Duration limit, Duration first_word, Tell tell);

  [[nodiscard]] Clock::time_point deadline() const { return deadline_; }
  [[nodiscard]] bool is_over() const { return Clock::now() >= deadline_; }
  [[nodiscard]] Duration limit() const { return limit_; }

  // "has waited 5 s, of 300 s at most" if it is time to say so: when `first_word` has passed, when
  // twice that has, and so on, a minute apart at most. Else nothing.
  [[nodiscard]] std::optional<std::string> word() { return word_at(Clock::now()); }
  // The same if it is that time now.
  [[nodiscard]] std::optional<std::string> word_at(Clock::time_point now);

  // Says what for, if it is time to.
  void waits_for(const std::string& what);
  // The same, of a text that takes some time to make.
  void waits_for(const std::function<std::string()>& what);

  // A line that is no word of waiting.
  void tell(const std::string& line) const;

 private:
  const Clock::time_point begin_;
  const Duration limit_;
  const Clock::time_point deadline_;
  const Tell tell_;
  Duration next_;  // after the beginning
};

// "300 s", "1.5 s" or "200 ms".
[[nodiscard]] std::string in_words(Duration duration);

}  // namespace rehearsal::real
