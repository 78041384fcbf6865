#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/api/program.h"

namespace rehearsal::endurance {

// Workers that call one another, hold references to one another's values and send large tensors;
// and the account of all their calls: a call that gives its value has run once, one that fails has
// run at most once and says at which worker and why, and no call does neither. One process.
class Ledger {
 public:
  Ledger();
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // So many workers with so many steps each, drawn from the seed. Outlives no ledger.
  [[nodiscard]] Program program(uint32_t workers, int64_t steps, Seed seed);

  // The entries that do not add up, once all workers have ended.
  [[nodiscard]] std::vector<std::string> complaints() const;

  [[nodiscard]] uint64_t calls() const;
  [[nodiscard]] uint64_t values() const;
};

}  // namespace rehearsal::endurance
