#include "sim/run_failure.h"

#include "core/base/printable.h"

namespace rehearsal::sim {

std::string to_text(const RunFailure& failure) {
  std::string text = failure.oracle;
  if (!failure.object.empty()) text += ": " + printable(failure.object);
  if (!failure.message.empty()) text += ": " + printable_lines(failure.message);
  return text;
}

}  // namespace rehearsal::sim
