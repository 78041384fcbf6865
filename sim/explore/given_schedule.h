#pragma once

#include <vector>

#include "sim/explore/explorer.h"

namespace rehearsal::sim::explore {

// Guides a run along a schedule that was written down.
class GivenSchedule final : public Guide {
 public:
  explicit GivenSchedule(const Schedule& schedule) : deviations_(schedule.deviations) {}

  size_t pick(const std::vector<Candidate>& enabled) override;
  uint64_t choose(uint64_t n) override;
  void received_from(size_t) override {}

  // Whether everything that is written has come up.
  [[nodiscard]] bool all_used() const { return next_ == deviations_.size(); }

 private:
  // The value written for this pick or choice; 0 if there is none.
  [[nodiscard]] uint64_t take(std::optional<size_t> choice);

  const std::vector<Schedule::Deviation> deviations_;
  size_t next_ = 0;
  size_t step_ = 0;    // of the present one, from 1
  size_t choice_ = 0;  // of the present step
};

}  // namespace rehearsal::sim::explore
