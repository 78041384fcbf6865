#include "tests/worlds/strand_trace.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "core/wire/message.h"

namespace rehearsal::test {
namespace {

std::string_view kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::frame:
      return "frame";
    case EventKind::api_call:
      return "api call";
    case EventKind::execution_started:
      return "execution started";
    case EventKind::execution_parked:
      return "execution parked";
    case EventKind::execution_resumed:
      return "execution resumed";
    case EventKind::execution_ended:
      return "execution ended";
    default:
      return "";
  }
}

bool is_of_the_group(uint32_t message_type) {
  const std::string_view name = message_name(message_type);
  constexpr std::array<std::string_view, 7> kNames = {
      "Ready", "ShutdownProbe", "ShutdownReport", "Leave", "GroupView", "Leaving", "NothingMore"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

void StrandTrace::on_event(const Event& event) {
  const std::string_view kind = kind_name(event.kind);
  if (kind.empty()) return;
  if (event.kind == EventKind::frame && is_of_the_group(event.message_type)) return;
  std::ostringstream line;
  line << kind << ' ' << event.id;
  if (event.kind == EventKind::frame) line << ' ' << message_name(event.message_type);
  const std::lock_guard lock(mutex_);
  lines_[event.worker].push_back(line.str());
}

std::vector<std::string> StrandTrace::lines_of(WorkerId worker) const {
  const std::lock_guard lock(mutex_);
  const auto found = lines_.find(worker);
  return found == lines_.end() ? std::vector<std::string>{} : found->second;
}

}  // namespace rehearsal::test
