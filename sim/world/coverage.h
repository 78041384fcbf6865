#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/trace.h"
#include "core/node/node.h"

namespace rehearsal::sim {

// The pairs that came up in a run, for people who ask what a search has never tried: a kind of
// message with what its receiver held when it came; with the kind that was handled there before it;
// and with what broke while it was under way.
class Coverage final : public Trace {
 public:
  void on_event(const Event& event) override;
  // Of a worker whose step is over.
  void after_step(WorkerId worker, const NodeCensus& census);
  void on_crash(WorkerId worker);

  // The numbers of the pairs, in ascending order; see CoverageTable.
  [[nodiscard]] std::vector<uint32_t> seen() const { return {seen_.begin(), seen_.end()}; }

 private:
  struct Sent {
    uint32_t kind = 0;
    bool arrived = false;
  };
  // By its number on the way from one worker to another.
  using Way = std::map<uint64_t, Sent>;
  void take(const Event& event);
  void break_way(WorkerId from, WorkerId to, uint32_t fault);

  std::set<uint32_t> seen_;
  std::map<WorkerId, uint32_t> holds_;     // a bit for each of what a census counts
  std::map<WorkerId, uint32_t> previous_;  // the kind of the last message that it handled
  std::map<std::pair<WorkerId, WorkerId>, Way> ways_;
};

// How the numbers of one of the three kinds of pairs are made, with a name for each row and column.
struct CoverageTable {
  std::string name;
  std::string title;
  uint32_t first = 0;  // the number of its first pair
  std::vector<std::string> rows;
  std::vector<std::string> columns;

  [[nodiscard]] uint32_t number(size_t row, size_t column) const;
};

[[nodiscard]] const std::vector<CoverageTable>& coverage_tables();

}  // namespace rehearsal::sim
