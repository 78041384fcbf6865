#include "real_net/worker/patience.h"

#include <algorithm>
#include <cstdio>

namespace rehearsal::real {
namespace {

constexpr Duration kWordsApartMax = std::chrono::minutes(1);

}  // namespace

Patience::Patience(Duration limit, Duration first_word, Tell tell)
    : begin_(Clock::now()),
      limit_(limit),
      deadline_(begin_ + limit),
      tell_(std::move(tell)),
      next_(first_word) {}

std::optional<std::string> Patience::word_at(Clock::time_point now) {
  const Duration waited = now - begin_;
  if (waited < next_) return std::nullopt;
  next_ = waited + std::min(waited, kWordsApartMax);
  const auto whole = std::chrono::floor<std::chrono::seconds>(waited);
  return "has waited " + in_words(whole > Duration::zero() ? Duration(whole) : waited) + ", of " +
         in_words(limit_) + " at most";
}

void Patience::waits_for(const std::string& what) {
  waits_for([&what] { return what; });
}

void Patience::waits_for(const std::function<std::string()>& what) {
  if (const std::optional<std::string> due = word()) tell(*due + ", for " + what());
}

void Patience::tell(const std::string& line) const {
  if (tell_) tell_(line);
}

std::string in_words(Duration duration) {
  using std::chrono::duration_cast;
  const auto count = duration_cast<std::chrono::milliseconds>(duration).count();
  if (count < 1000) return std::to_string(count) + " ms";
  if (count % 1000 == 0) return std::to_string(count / 1000) + " s";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(count) / 1000);
  return text;
}

}  // namespace rehearsal::real
