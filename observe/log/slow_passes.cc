#include "observe/log/slow_passes.h"

#include <algorithm>
#include <string_view>

namespace rehearsal::observe {
namespace {

// The rest of the line that begins so.
std::string rest_of(const std::string& lines, std::string_view head) {
  for (size_t from = 0; from < lines.size();) {
    const size_t end = std::min(lines.find('\n', from), lines.size());
    const std::string_view line = std::string_view(lines).substr(from, end - from);
    if (line.starts_with(head)) return std::string(line.substr(head.size()));
    from = end + 1;
  }
  return {};
}

}  // namespace

std::string SlowPasses::head(const std::string& context, uint64_t epoch,
                             const std::string& starter) {
  return "backward pass " + std::to_string(epoch) + " of context " + context + " by '" + starter +
         "': ";
}

void SlowPasses::on_event(const Event& event) {
  if (after_ <= Duration::zero()) return;
  const Pass pass{event.id, event.number, event.peer};
  if (event.kind == EventKind::pass_started) running_[pass] = {};
  if (event.kind == EventKind::pass_ended) running_.erase(pass);
  if (event.kind == EventKind::node_stopped) running_.clear();
}

void SlowPasses::look(Instant now, const Waits& waits) {
  std::optional<std::string> lines;
  for (auto& [pass, running] : running_) {
    if (!running.seen) running.seen = now;
    const auto times = static_cast<uint64_t>((now - *running.seen) / after_);
    if (times <= running.told) continue;
    running.told = times;
    if (!log_.writes(LogLevel::info)) continue;
    if (!lines) lines = waits();
    const auto& [context, epoch, rank] = pass;
    const std::string id = to_string(context);
    const std::string starter =
        rank.value < names_.size() ? names_[rank.value] : std::to_string(rank.value);
    log_.write(LogLevel::info, "pass_waits",
               {{"context", id},
                {"epoch", std::to_string(epoch)},
                {"starter", starter},
                {"for_seconds", seconds_text(now - *running.seen)},
                {"waits", rest_of(*lines, head(id, epoch, starter))}});
  }
}

}  // namespace rehearsal::observe
