#include "observe/log/long_waits.h"

#include <utility>

namespace rehearsal::observe {

void LongWaits::look(const std::vector<WaitViews::Stack>& stacks) {
  if (after_ <= Duration::zero()) return;
  const std::map<Hash128, Seen> before = std::exchange(seen_, {});
  for (const WaitViews::Stack& stack : stacks) {
    if (!stack.waited) continue;
    Seen& now = seen_[stack.path];
    now.waited = *stack.waited;
    const auto last = before.find(stack.path);
    // A shorter one is another wait.
    if (last != before.end() && last->second.waited <= now.waited) now.told = last->second.told;
    if (now.told || now.waited < after_) continue;
    now.told = true;
    log_.write(
        stack.holder ? LogLevel::warn : LogLevel::info, "waits_long",
        {{"what", stack.label}, {"in", stack.what}, {"for_seconds", seconds_text(now.waited)}});
  }
}

}  // namespace rehearsal::observe
