#include "core/base/interval_set.h"

#include <iterator>

namespace rehearsal {

bool IntervalSet::contains(uint64_t number) const {
  if (number < base_ || number == UINT64_MAX) return true;  // An interval ends below that.
  const auto after = above_.upper_bound(number);
  return after != above_.begin() && number < std::prev(after)->second;
}

bool IntervalSet::insert(uint64_t number) {
  if (contains(number)) return false;
  if (number == base_) {
    ++base_;
    if (!above_.empty() && above_.begin()->first == base_) {
      base_ = above_.begin()->second;
      above_.erase(above_.begin());
    }
    return true;
  }
  auto after = above_.upper_bound(number);
  const bool joins_after = after != above_.end() && after->first == number + 1;
  const bool joins_before = after != above_.begin() && std::prev(after)->second == number;
  const uint64_t end = joins_after ? after->second : number + 1;
  if (joins_after) after = above_.erase(after);
  if (joins_before)
    std::prev(after)->second = end;
  else
    above_.emplace_hint(after, number, end);
  return true;
}

}  // namespace rehearsal
