#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "sim/oracle.h"

namespace rehearsal::sim {

[[nodiscard]] std::string_view name_of(EventKind kind);

// Writes the events of a run, a line each: number, virtual seconds, worker and life, kind, peer,
// causal id, message, what its tensors hash to, text, of a note its value, and the fingerprint so
// far. Two runs are
// compared line by line.
class EventLines {
 public:
  EventLines(std::ostream& out, std::vector<std::string> names)
      : out_(out), names_(std::move(names)) {}

  void write(const Observation& seen, const Hash128& fingerprint);

 private:
  [[nodiscard]] std::string name(WorkerId worker) const;

  std::ostream& out_;
  const std::vector<std::string> names_;
  uint64_t number_ = 0;
};

// Where two files of event lines part; empty if they are equal.
struct Difference {
  uint64_t line = 0;  // from 1
  std::string first;  // empty: that file has ended
  std::string second;
};
[[nodiscard]] std::optional<Difference> first_difference(std::istream& first, std::istream& second);

}  // namespace rehearsal::sim
