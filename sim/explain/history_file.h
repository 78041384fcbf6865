#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "sim/explain/history.h"

namespace rehearsal::sim {

// Writes a history while the run goes on: a line with the workers, then an array of JSON for each
// entry. Every line is flushed, so that a run that ends its process leaves all that came before.
class HistoryWriter final : public HistorySink {
 public:
  explicit HistoryWriter(std::ostream& out) : out_(out) {}
  void begin(const std::vector<std::string>& workers) override;
  void add(Entry entry) override;

 private:
  std::ostream& out_;
};

// The history that a HistoryWriter wrote. A last line that is not whole is left out. Throws
// std::runtime_error with one line if it is something else.
[[nodiscard]] History read_history(std::istream& in);

}  // namespace rehearsal::sim
