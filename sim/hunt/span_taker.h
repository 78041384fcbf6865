#pragma once

#include <string>
#include <vector>

#include "core/base/trace.h"

namespace rehearsal::sim {

// Takes the spans of a scene's calls for its report.
class SpanTaker : public Trace {
 public:
  // A cluster of these workers begins: what an earlier one left is forgotten.
  virtual void begin(const std::vector<std::string>& workers) = 0;

  // The spans so far, as text that ui.perfetto.dev opens.
  [[nodiscard]] virtual std::string text() const = 0;

  [[nodiscard]] bool hears_notes() const override { return false; }
};

}  // namespace rehearsal::sim
