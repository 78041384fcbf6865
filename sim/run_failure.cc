#include "sim/run_failure.h"

namespace rehearsal::sim {

std::string to_text(const RunFailure& failure) {
  std::string text = failure.oracle;
  if (!failure.object.empty()) text += ": " + failure.object;
  if (!failure.message.empty()) text += ": " + failure.message;
  return text;
}

}  // namespace rehearsal::sim
