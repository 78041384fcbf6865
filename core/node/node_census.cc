// All that a node holds: counted, and told to people.
#include <algorithm>
#include <string>
#include <string_view>

#include "core/node/node_parts.h"

namespace rehearsal {

namespace {

// A line for each stack: "take waits for boost::fibers::mutex::lock(), held by put, for 5200 ms".
std::string waits_text(const std::vector<WaitViews::Stack>& stacks) {
  std::string text;
  for (const WaitViews::Stack& stack : stacks) {
    text += stack.label + " waits for " + stack.what;
    if (stack.id != CausalId{}) text += " " + to_string(stack.id);
    if (stack.waited)
      text += ", for " + std::to_string(*stack.waited / std::chrono::milliseconds(1)) + " ms";
    text += "\n";
  }
  return text;
}

}  // namespace

NodeCensus NodeParts::census() const {
  return {.pending_calls = pending.size(),
          .executions = served.executions() + strand->continuations() + contexts.running_walks(),
          .waiting = served.waiting(),
          .owners = rrefs.owner_count(),
          .shared_owners = rrefs.shared_owner_count(),
          .owner_forks = rrefs.fork_count(),
          .owner_handles = rrefs.handle_count(),
          .users = rrefs.user_count(),
          .pending_users = rrefs.pending_user_count(),
          .pending_children = rrefs.pending_child_count(),
          .published = published.size(),
          .contexts = contexts.size(),
          .send_functions = contexts.send_function_count(),
          .passes = contexts.pass_count(),
          .unacknowledged = ended ? 0 : sessions.unacknowledged(),
          .shutdown_frames = ended ? 0 : sessions.unacknowledged_of_group(),
          .timers = deadlines.size(),
          .loose_timers = deadlines.loose_count(),
          .parked = strand->waits().size(),
          .lookups = published.waiting(),
          .gatherings = gatherings.size(),
          .cancelled_makers = pending.cancelled_maker_count(),
          .given_up_calls = served.given_up_count(),
          .early_cancels = served.early_cancel_count(),
          .awaited_values = rrefs.awaited_count(),
          .late_releases = contexts.late_release_count(),
          .awaited_members = group->awaited_members(),
          .loans = sessions.loans(),
          .tallied = ended ? 0 : served.tallied() + rrefs.tallied() + contexts.tallied()};
}

std::string NodeParts::kept_for_the_lost() const {
  std::string lines;
  for (const WorkerId lost : sessions.lost_workers()) {
    const std::pair<const char*, uint64_t> counts[] = {
        {"references", rrefs.counts_for(lost)},
        {"contexts and passes", contexts.counts_for(lost)},
        {"answers", pending.owed_answers(lost)},
        {"cancellations", served.expects_cancelled_calls_of(lost) ? 1 : 0}};
    for (const auto& [what, count] : counts)
      if (count > 0)
        lines += "for the lost worker '" + options.names[lost.value] + "' still count " + what +
                 ": " + std::to_string(count) + "\n";
  }
  return lines;
}

PeerPeaks NodeParts::peaks() const {
  return {.decoded_bytes = served.decoded_peak(),
          .gaps = std::max(sessions.gaps_peak(), rrefs.gaps_peak()),
          .contexts = contexts.peak(),
          .passes = contexts.passes_peak(),
          .failed_passes = contexts.failed_passes_peak(),
          .sends = contexts.sends_peak(),
          .references = rrefs.references_peak(),
          .awaited_values = rrefs.awaited_peak(),
          .early_cancels = served.early_cancels_peak(),
          .served_bytes = served.bytes_peak(),
          .gatherings = gatherings.peak()};
}

std::string NodeParts::left() const {
  const NodeCensus now = census();
  std::string text;
  const auto count = [&text](uint64_t number, std::string_view what) {
    if (number == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(number) + " " + std::string(what) +
            (number == 1 ? "" : "s");
  };
  count(now.pending_calls, "unanswered call");
  count(now.executions, "running function");
  count(now.waiting, "waiting call");
  count(now.passes, "backward call");
  count(now.unacknowledged, "unacknowledged message");
  count(now.owners, "owned value");
  count(now.users, "reference");
  count(now.pending_children, "reference on its way");
  count(now.contexts, "autograd context");
  if (const std::string awaited = rrefs.describe_awaited(); !awaited.empty())
    text += (text.empty() ? "" : "; ") + awaited;
  return text;
}

DebugInfo NodeParts::debug_info() const {
  const NodeCensus now = census();
  return {{"rpc.pending_calls", std::to_string(now.pending_calls)},
          {"rpc.executions", std::to_string(now.executions)},
          {"rpc.waiting", std::to_string(now.waiting)},
          {"rpc.unacknowledged", std::to_string(now.unacknowledged)},
          {"rpc.waits", waits_text(strand->waits().views())},
          {"rpc.timers", std::to_string(now.timers)},
          {"rpc.gatherings", std::to_string(gatherings.size())},
          {"rref.owners", std::to_string(now.owners)},
          {"rref.shared_owners", std::to_string(now.shared_owners)},
          {"rref.owner_forks", std::to_string(now.owner_forks)},
          {"rref.owner_handles", std::to_string(now.owner_handles)},
          {"rref.users", std::to_string(now.users)},
          {"rref.pending_users", std::to_string(now.pending_users)},
          {"rref.pending_children", std::to_string(now.pending_children)},
          {"rref.published", std::to_string(now.published)},
          {"rref.lookups", std::to_string(published.waiting())},
          {"rref.table", rrefs.debug_info() + published.debug_info()},
          {"autograd.contexts", std::to_string(now.contexts)},
          {"autograd.send_functions", std::to_string(now.send_functions)},
          {"autograd.passes", std::to_string(now.passes)},
          {"autograd.table", contexts.debug_info()}};
}

ValueViews NodeParts::values(std::type_index type) const {
  ValueViews views;
  if (const WorkerStates::State* state = states.find(type)) {
    const bool busy = state->monitor->held() || strand->waits().has_entered(*state->monitor);
    views.push_back({.id = {}, .value = state->value.get(), .busy = busy});
  }
  for (const ValueView& owned : rrefs.values(type)) views.push_back(owned);
  return views;
}

WaitViews NodeParts::waits() const {
  return {.stacks = strand->waits().views(),
          .calls = pending.views(),
          .others = contexts.describe_waits() + group->describe()};
}

}  // namespace rehearsal
