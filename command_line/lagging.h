#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::command_line {

// The results of a search's runs, taken in the order of the runs and some of them late: for run n
// those up to n − kLag, whatever the processes did in between. So what is learnt from them is a
// function of the search's arguments and not of the number of processes.
template <class Result>
class Lagging {
 public:
  // The first so many runs learn nothing.
  static constexpr size_t kLag = 128;

  // Whether everything is there that this run is to know.
  [[nodiscard]] bool ready_for(size_t task) const {
    for (size_t known = next_; known + kLag <= task; ++known)
      if (!waiting_.contains(known)) return false;
    return true;
  }

  void put(size_t task, Result result) { waiting_.emplace(task, std::move(result)); }

  // Gives `take` those that this run is to know and no earlier one was. REQUIRES: ready_for(task).
  template <class Take>
  void take_until(size_t task, const Take& take) {
    for (; next_ + kLag <= task; ++next_) {
      const auto result = waiting_.find(next_);
      REHEARSAL_CHECK(result != waiting_.end(), next_, task);
      take(std::move(result->second));
      waiting_.erase(result);
    }
  }

 private:
  size_t next_ = 0;                   // the first run whose result was not taken yet
  std::map<size_t, Result> waiting_;  // of it and later ones
};

}  // namespace rehearsal::command_line
