#include "sim/world/stack_words.h"

#include <algorithm>

namespace rehearsal::sim {

std::string state_of(const Execution& execution, std::string state, const WaitViews& waits,
                     const std::vector<std::string>& names) {
  const auto wait =
      std::find_if(waits.stacks.begin(), waits.stacks.end(), [&execution](const auto& stack) {
        return stack.path == execution.path() && stack.label == execution.label();
      });
  if (wait == waits.stacks.end() || state != "waits") return state;
  state += " for " + wait->what;
  const auto call = std::find_if(waits.calls.begin(), waits.calls.end(),
                                 [&wait](const auto& known) { return known.id == wait->id; });
  if (call != waits.calls.end() && call->to.value < names.size())
    state += " at " + names[call->to.value];
  return state;
}

}  // namespace rehearsal::sim
