#include "sim/oracles/no_leak.h"

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

using Count = uint64_t NodeCensus::*;

// When a graceful end may leave some of them.
enum class MayStay : uint8_t { never, in_dynamic_group, always };

struct Table {
  const char* name;
  Count count;
  MayStay may_stay = MayStay::never;
  Count except = nullptr;  // a part of them with a line of its own
  bool by_a_lie = false;   // a mad worker can leave some at others, which go with their nodes
};

using enum MayStay;
constexpr std::array kTables = std::to_array<Table>({
    // A mad worker may call when it has said that it is quiet: what it calls is cut off.
    {"pending calls", &NodeCensus::pending_calls, never, nullptr, /*by_a_lie=*/true},
    {"executions", &NodeCensus::executions, never, nullptr, /*by_a_lie=*/true},
    {"waiting calls", &NodeCensus::waiting, never, nullptr, /*by_a_lie=*/true},
    // A worker that leaves takes the values that others hold with it, and what these hold here.
    {"owned values", &NodeCensus::owners, in_dynamic_group},
    {"owned values that others refer to", &NodeCensus::shared_owners, in_dynamic_group},
    {"forks of owned values", &NodeCensus::owner_forks, in_dynamic_group},
    {"handles of owned values", &NodeCensus::owner_handles, in_dynamic_group},
    {"user references", &NodeCensus::users},
    {"unconfirmed references", &NodeCensus::pending_users},
    {"pending children", &NodeCensus::pending_children},
    {"published names", &NodeCensus::published},
    // Its creator tells of a context's end: a mad one, or one that it has misled, may not.
    {"contexts", &NodeCensus::contexts, never, nullptr, /*by_a_lie=*/true},
    {"send functions", &NodeCensus::send_functions, never, nullptr, /*by_a_lie=*/true},
    {"passes", &NodeCensus::passes},
    // A dynamic group asks a worker until it knows that it has left: its answers may find nobody.
    // A mad worker has to acknowledge nothing.
    {"unacknowledged frames", &NodeCensus::unacknowledged, in_dynamic_group,
     &NodeCensus::shutdown_frames, /*by_a_lie=*/true},
    // A worker that was the last to be told, or that came back during the shutdown, may be gone
    // before it acknowledges that: it is waited for, but not for ever.
    {"unacknowledged frames of the group", &NodeCensus::shutdown_frames, always},
    {"timers", &NodeCensus::timers, never, &NodeCensus::loose_timers},
    // `after`, the delay of a batch, the time of a gathering: nobody says that it is wanted no
    // more.
    {"loose timers", &NodeCensus::loose_timers, always},
    {"parked stacks", &NodeCensus::parked, never, nullptr, /*by_a_lie=*/true},
    {"lookups", &NodeCensus::lookups},
    // Its members have given up, else this worker would wait; it still refuses those who come late.
    {"gatherings", &NodeCensus::gatherings, always},
    {"cancelled makers of calls", &NodeCensus::cancelled_makers},
    // An asynchronous function may promise what never comes: the program's promise.
    {"calls given up before their value was there", &NodeCensus::given_up_calls, always},
    // Whether the call was over or is on its way is known when more has come from its caller.
    {"early cancellations", &NodeCensus::early_cancels, always},
    // Of false names that are refused at the end of all calls: one may come after that.
    {"values that nobody has created", &NodeCensus::awaited_values, never, nullptr,
     /*by_a_lie=*/true},
    {"late releases of contexts", &NodeCensus::late_releases},
    // A wait for a worker that was over in time is forgotten when the worker comes.
    {"waits for workers to come", &NodeCensus::awaited_members, always},
    {"tensors that others have borrowed", &NodeCensus::loans, in_dynamic_group},
    // Its tables are empty by then, so nothing counts any more.
    {"counts of what peers have caused", &NodeCensus::tallied, in_dynamic_group, nullptr,
     /*by_a_lie=*/true},
});
static_assert(sizeof(NodeCensus) == kTables.size() * sizeof(uint64_t), "a row for each number");

template <class F>
std::string text_of(const NodeCensus& census, F is_told) {
  std::string text;
  for (const Table& table : kTables) {
    if (!is_told(table)) continue;
    const uint64_t count =
        census.*table.count - (table.except == nullptr ? 0 : census.*table.except);
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + table.name;
  }
  return text;
}

constexpr std::string_view kGracefulEnd = "the worker has shut down";

class NoLeak final : public QuietOracle {
 public:
  explicit NoLeak(bool lied_to) : lied_to_(lied_to) {}

  std::string_view name() const override { return "no leak"; }
  EventKinds watched() const override {
    return {EventKind::execution_started, EventKind::execution_ended, EventKind::node_stopped};
  }

  // A worker that leaves in good order cuts nothing off, unless a mad one has told it to go.
  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    if (event.kind == EventKind::execution_started) ++running_[seen.life];
    if (event.kind == EventKind::execution_ended) --running_[seen.life];
    if (event.kind != EventKind::node_stopped || event.text != kGracefulEnd) return;
    graceful_.insert(seen.life);
    if (running_[seen.life] > 0 && !lied_to_)
      findings.fail(name(), "worker " + std::to_string(seen.life.worker.value),
                    "it has left, and " + std::to_string(running_[seen.life]) +
                        " functions, continuations or walks still run there");
  }

  void at_end(const ClusterView& cluster, Findings& findings) override {
    for (const LifeView& life : cluster.lives) {
      const std::string worker = "worker '" + std::string(life.name) + "'";
      if (life.live_stacks > 0)
        findings.fail(name(), worker, std::to_string(life.live_stacks) + " stacks are left");
      if (life.census_at_end != nullptr && graceful_.contains(life.id))
        if (const std::string left = left_at_end(*life.census_at_end, cluster.dynamic, lied_to_);
            !left.empty())
          findings.fail(name(), worker, "when it had shut down, there were left: " + left);
      // Where a worker is cut off its functions may still wait with a time of their own.
      if (life.timers_at_stop > 0 && graceful_.contains(life.id) && !lied_to_)
        findings.fail(name(), worker,
                      "it has shut down, and " + std::to_string(life.timers_at_stop) +
                          " timers of its runtime were left");
      if (life.node == nullptr) continue;
      if (!life.node->ended()) findings.fail(name(), worker, "its node has not ended");
      NodeCensus now = life.node->census();
      // Executions that a crash ended are not counted down: their stacks tell. Its group is left as
      // it was, and goes with the node.
      if (life.crashed) now.executions = now.awaited_members = 0;
      if (const std::string left = text_of(now, [](const Table&) { return true; }); !left.empty())
        findings.fail(name(), worker, "its node has ended, and there are left: " + left);
    }
  }

 private:
  const bool lied_to_;
  std::map<net_fake::LifeId, int64_t> running_;
  std::set<net_fake::LifeId> graceful_;
};

}  // namespace

std::string left_at_end(const NodeCensus& census, bool dynamic, bool lied_to) {
  return text_of(census, [dynamic, lied_to](const Table& table) {
    if (lied_to && table.by_a_lie) return false;
    return table.may_stay == never || (table.may_stay == in_dynamic_group && !dynamic);
  });
}

std::unique_ptr<Oracle> make_no_leak(bool lied_to) { return std::make_unique<NoLeak>(lied_to); }

}  // namespace rehearsal::sim
