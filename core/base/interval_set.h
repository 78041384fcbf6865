#pragma once

#include <cstdint>
#include <map>

namespace rehearsal {

// A set of whole numbers that grows from `first` and is mostly contiguous: a base below which all
// are in, and intervals above it. It never slides over a gap.
class IntervalSet {
 public:
  explicit IntervalSet(uint64_t first) : base_(first) {}

  // False if it was in already. The largest number of all always is.
  bool insert(uint64_t number);
  [[nodiscard]] bool contains(uint64_t number) const;

  // The smallest number that is not in.
  [[nodiscard]] uint64_t base() const { return base_; }
  [[nodiscard]] bool contiguous() const { return above_.empty(); }
  // How many stretches of numbers are missing.
  [[nodiscard]] uint64_t gaps() const { return above_.size(); }
  // The first one counts as in. REQUIRES: gaps() > 0.
  void close_first_gap() {
    base_ = above_.begin()->second;
    above_.erase(above_.begin());
  }
  // The numbers beyond the first one that is missing are taken out again.
  void forget_above() { above_.clear(); }

 private:
  uint64_t base_;
  std::map<uint64_t, uint64_t> above_;  // begin → end (not included), disjoint, not adjacent
};

}  // namespace rehearsal
