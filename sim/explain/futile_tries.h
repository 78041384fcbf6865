#pragma once

#include <map>
#include <vector>

#include "core/base/failing_calls.h"
#include "sim/explain/history.h"
#include "sim/oracle.h"

namespace rehearsal::sim {

// Leaves out of a history what says nothing new: of code that tries again and again in vain, or
// asks without ever waiting, the first tries are told, and not hundreds of thousands.
class FutileTries {
 public:
  // So many of each in a row are told.
  static constexpr uint64_t kTold = 1000;

  // The entries to be written when this has been seen, in their order: none, if it belongs to one
  // more try in vain; else `entry`, behind those that turn out to belong to none.
  [[nodiscard]] std::vector<Entry> take(const Observation& seen, Entry entry);

  // Whether this life has tried so often that its further tries are left out.
  [[nodiscard]] bool is_futile(const net_fake::LifeId& life) const;

 private:
  struct Tries {
    FailingCalls calls{Duration{}};
    bool fails = false;            // as often as is told
    bool parked = false;           // was what this life did last
    Instant parked_at{};           // then
    uint64_t passes = 0;           // waits in a row that were over at once
    std::vector<Entry> held = {};  // of a try that is under way

    [[nodiscard]] bool futile() const { return fails || passes > kTold; }
  };
  static void note(Tries& tries, const Observation& seen);

  std::map<net_fake::LifeId, Tries> lives_;
};

}  // namespace rehearsal::sim
