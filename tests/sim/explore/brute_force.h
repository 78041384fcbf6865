#pragma once

#include <vector>

#include "core/base/check.h"
#include "sim/explore/guide.h"

namespace rehearsal::sim::explore {

// Runs every schedule there is: all picks and all choices, one after the other.
class BruteForce final : public Guide {
 public:
  [[nodiscard]] bool begin_run() {
    at_ = 0;
    return !done_;
  }
  void end_run() {
    ++schedules_;
    while (!path_.empty() && ++path_.back().value == path_.back().of) path_.pop_back();
    done_ = path_.empty();
  }
  [[nodiscard]] uint64_t schedules() const { return schedules_; }

  size_t pick(const std::vector<Candidate>& enabled) override {
    return enabled.empty() ? kStop : next(enabled.size());
  }
  uint64_t choose(uint64_t n) override { return next(n); }
  void received_from(size_t) override {}

 private:
  struct Branch {
    uint64_t value = 0;
    uint64_t of = 0;
  };
  uint64_t next(uint64_t n) {
    if (at_ == path_.size()) path_.push_back({0, n});
    REHEARSAL_CHECK(path_[at_].of == n);
    return path_[at_++].value;
  }

  std::vector<Branch> path_;
  size_t at_ = 0;
  bool done_ = false;
  uint64_t schedules_ = 0;
};

}  // namespace rehearsal::sim::explore
