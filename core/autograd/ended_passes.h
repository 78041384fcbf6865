#pragma once

#include <cstdint>
#include <map>

#include "core/base/interval_set.h"
#include "core/wire/pass_name.h"

namespace rehearsal {

// The passes of one context that have ended well at this worker: none begins again. It grows with
// the lives that have started passes, not with the passes.
class EndedPasses {
 public:
  // A worker takes part in some of another one's passes: so many stretches of those in which it did
  // not are told from those that have ended. The oldest one's count as ended then: a pass that so
  // many have overtaken does not begin any more.
  static constexpr uint64_t kStretchesMax = 4096;

  void insert(const PassId& pass) {
    IntervalSet& epochs = by_starter_.try_emplace(pass.starter_incarnation, 1).first->second;
    epochs.insert(pass.epoch);
    if (epochs.gaps() > kStretchesMax) epochs.close_first_gap();
  }
  [[nodiscard]] bool contains(const PassId& pass) const {
    const auto found = by_starter_.find(pass.starter_incarnation);
    return found != by_starter_.end() && found->second.contains(pass.epoch);
  }

 private:
  std::map<Incarnation, IntervalSet> by_starter_;
};

}  // namespace rehearsal
