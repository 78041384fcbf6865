#include "sim/world/event_lines.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/check.h"
#include "core/base/printable.h"
#include "core/wire/message.h"
#include "sim/world/fingerprint.h"

namespace rehearsal::sim {
namespace {

constexpr std::array<std::string_view, kEventKinds> kEventNames = {"frame",
                                                                   "ack_frame",
                                                                   "peer_up",
                                                                   "peer_lost",
                                                                   "drained",
                                                                   "timer",
                                                                   "api_call",
                                                                   "execution_started",
                                                                   "execution_parked",
                                                                   "execution_resumed",
                                                                   "execution_ended",
                                                                   "frame_sent",
                                                                   "frame_resent",
                                                                   "frame_dropped",
                                                                   "call_executed",
                                                                   "call_completed",
                                                                   "call_served",
                                                                   "peer_fenced",
                                                                   "owner_created",
                                                                   "owner_dropped",
                                                                   "fork_registered",
                                                                   "fork_deleted",
                                                                   "fork_refused",
                                                                   "user_created",
                                                                   "user_deleted",
                                                                   "context_opened",
                                                                   "context_released",
                                                                   "pass_started",
                                                                   "pass_ended",
                                                                   "optimizer_stepped",
                                                                   "checkpoint_saved",
                                                                   "checkpoint_loaded",
                                                                   "reference_leaked",
                                                                   "node_stopped",
                                                                   "note",
                                                                   "mark",
                                                                   "destructor_failed"};

std::string seconds(Instant when) {
  const int64_t nanoseconds = when.time_since_epoch().count();
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%lld.%09lld",
                static_cast<long long>(nanoseconds / 1'000'000'000),
                static_cast<long long>(nanoseconds % 1'000'000'000));
  return text.data();
}

}  // namespace

std::string_view name_of(EventKind kind) {
  const auto index = static_cast<size_t>(kind);
  REHEARSAL_CHECK(index < kEventNames.size(), index);
  return kEventNames[index];
}

std::string EventLines::name(WorkerId worker) const {
  return worker.value < names_.size() ? names_[worker.value] : "nobody";
}

void EventLines::write(const Observation& seen, const Hash128& fingerprint) {
  const Event& event = seen.event;
  out_ << ++number_ << ' ' << seconds(seen.when) << ' ' << name(seen.life.worker) << '.'
       << seen.life.life << ' ' << name_of(event.kind);
  if (event.peer != kNoPeer) out_ << " peer=" << name(event.peer);
  if (event.id != CausalId{}) out_ << " id=" << event.id;
  if (event.message_type != 0) out_ << " message=" << message_name(event.message_type);
  if (event.number != 0) out_ << " number=" << event.number;
  if (event.digest != 0) out_ << " digest=" << event.digest;
  if (seen.tensors != 0) out_ << " tensors=" << seen.tensors;
  const auto write_quoted = [this](std::string_view text) {
    std::string line = printable_lines(text);
    std::ranges::replace(line, '\n', ' ');
    out_ << " \"" << line << '"';
  };
  if (!event.text.empty()) write_quoted(event.text);
  if (event.kind == EventKind::note) write_quoted(event.value);
  out_ << ' ' << to_hex(fingerprint).substr(24) << '\n';
}

std::optional<Difference> first_difference(std::istream& first, std::istream& second) {
  Difference difference;
  while (true) {
    ++difference.line;
    difference.first.clear();
    difference.second.clear();
    const bool one = static_cast<bool>(std::getline(first, difference.first));
    const bool two = static_cast<bool>(std::getline(second, difference.second));
    if (!one && !two) return std::nullopt;
    if (one != two || difference.first != difference.second) return difference;
  }
}

}  // namespace rehearsal::sim
