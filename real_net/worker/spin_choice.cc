#include "real_net/worker/spin_choice.h"

#include "real_net/runtime/real_runtime.h"
#include "real_net/worker/liveness.h"

namespace rehearsal::real {

Result<Duration> choose_spin(const std::string& text, const Environment& environment) {
  constexpr const char* kVariable = "REHEARSAL_SPIN";
  const std::string chosen = text.empty() ? environment(kVariable).value_or("") : text;
  if (chosen.empty()) return RuntimeOptions{}.spin_max;
  const std::string typed = text.empty() ? kVariable + ("=" + chosen) : "--spin " + chosen;
  const std::optional<Duration> time = parse_duration(chosen);
  if (!time || *time > std::chrono::milliseconds(100))
    return wrong_arguments(typed + ": type a time of at most 100ms, for example 60us, or 0");
  return *time;
}

}  // namespace rehearsal::real
