#include "sim/world/coverage.h"

#include <array>
#include <string_view>

#include "core/wire/message.h"

namespace rehearsal::sim {
namespace {

constexpr uint32_t kColumnsMax = 64;
constexpr uint32_t kRowsMax = 64;
constexpr uint32_t kHoldings = 0;
constexpr uint32_t kOrders = kRowsMax * kColumnsMax;
constexpr uint32_t kFaults = 2 * kOrders;

uint32_t pair(uint32_t table, uint32_t row, uint32_t column) {
  return table + row * kColumnsMax + column;
}

struct Holding {
  std::string_view name;
  uint64_t NodeCensus::*count;
};

// The column of each is its place behind that of nothing.
constexpr std::array kCensus = std::to_array<Holding>({
    {"calls it waits for", &NodeCensus::pending_calls},
    {"functions that run", &NodeCensus::executions},
    {"calls that wait here", &NodeCensus::waiting},
    {"owners", &NodeCensus::owners},
    {"shared owners", &NodeCensus::shared_owners},
    {"forks of owners", &NodeCensus::owner_forks},
    {"handles of owners", &NodeCensus::owner_handles},
    {"users", &NodeCensus::users},
    {"pending users", &NodeCensus::pending_users},
    {"pending children", &NodeCensus::pending_children},
    {"published names", &NodeCensus::published},
    {"contexts", &NodeCensus::contexts},
    {"send functions", &NodeCensus::send_functions},
    {"passes", &NodeCensus::passes},
    {"unacknowledged frames", &NodeCensus::unacknowledged},
    {"frames of the shutdown", &NodeCensus::shutdown_frames},
    {"timers", &NodeCensus::timers},
    {"loose timers", &NodeCensus::loose_timers},
    {"parked stacks", &NodeCensus::parked},
    {"lookups", &NodeCensus::lookups},
    {"gatherings", &NodeCensus::gatherings},
    {"cancelled makers", &NodeCensus::cancelled_makers},
    {"given up calls", &NodeCensus::given_up_calls},
    {"early cancels", &NodeCensus::early_cancels},
    {"awaited values", &NodeCensus::awaited_values},
    {"late releases", &NodeCensus::late_releases},
    {"awaited members", &NodeCensus::awaited_members},
    {"loans", &NodeCensus::loans},
});
static_assert(kCensus.size() < 32);

enum Fault : uint32_t { kLinkLost, kSentAgain, kReceiverCrashed, kSenderCrashed, kGivenUp };
constexpr std::array kFaultNames = std::to_array<std::string_view>(
    {"link lost", "sent again", "receiver crashed", "sender crashed", "one gave the other up"});

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (uint32_t kind = 1; kind < std::variant_size_v<MessageContent>; ++kind)
    names.emplace_back(message_name(kind));
  return names;
}

std::vector<CoverageTable> tables() {
  std::vector<std::string> holdings = {"nothing"};
  for (const Holding& holding : kCensus) holdings.emplace_back(holding.name);
  return {
      {"holding", "messages, and what their receiver held", kHoldings, kinds(), holdings},
      {"order", "messages, and those that the same worker handled next", kOrders, kinds(), kinds()},
      {"fault",
       "messages, and what broke while they were under way",
       kFaults,
       kinds(),
       {kFaultNames.begin(), kFaultNames.end()}}};
}

}  // namespace

uint32_t CoverageTable::number(size_t row, size_t column) const {
  return pair(first, static_cast<uint32_t>(row), static_cast<uint32_t>(column));
}

const std::vector<CoverageTable>& coverage_tables() {
  static const std::vector<CoverageTable> all = tables();
  return all;
}

void Coverage::on_event(const Event& event) {
  switch (event.kind) {
    case EventKind::frame_sent:
      ways_[{event.worker, event.peer}][event.number] = {.kind = event.message_type - 1};
      return;
    case EventKind::frame_resent:
      if (const auto sent = ways_[{event.worker, event.peer}].find(event.number);
          sent != ways_[{event.worker, event.peer}].end())
        seen_.insert(pair(kFaults, sent->second.kind, kSentAgain));
      return;
    case EventKind::frame:
      return take(event);
    case EventKind::peer_lost:
      break_way(event.worker, event.peer, kLinkLost);
      return break_way(event.peer, event.worker, kLinkLost);
    case EventKind::peer_fenced:
      break_way(event.worker, event.peer, kGivenUp);
      return break_way(event.peer, event.worker, kGivenUp);
    default:
      return;
  }
}

void Coverage::take(const Event& event) {
  const uint32_t kind = event.message_type - 1;
  ways_[{event.peer, event.worker}][event.number] = {.kind = kind, .arrived = true};
  const uint32_t holds = holds_[event.worker];
  if (holds == 0) seen_.insert(pair(kHoldings, kind, 0));
  for (uint32_t i = 0; i < kCensus.size(); ++i)
    if ((holds >> i & 1) != 0) seen_.insert(pair(kHoldings, kind, i + 1));
  const auto [previous, is_first] = previous_.try_emplace(event.worker, kind);
  if (!is_first) seen_.insert(pair(kOrders, std::exchange(previous->second, kind), kind));
}

void Coverage::break_way(WorkerId from, WorkerId to, uint32_t fault) {
  for (const auto& [number, sent] : ways_[{from, to}])
    if (!sent.arrived) seen_.insert(pair(kFaults, sent.kind, fault));
}

void Coverage::after_step(WorkerId worker, const NodeCensus& census) {
  uint32_t holds = 0;
  for (size_t i = 0; i < kCensus.size(); ++i)
    if (census.*kCensus[i].count > 0) holds |= uint32_t{1} << i;
  holds_[worker] = holds;
}

// Numbers begin anew with its next life.
void Coverage::on_crash(WorkerId worker) {
  for (auto& [ends, way] : ways_) {
    if (ends.first != worker && ends.second != worker) continue;
    break_way(ends.first, ends.second, ends.first == worker ? kSenderCrashed : kReceiverCrashed);
    way.clear();
  }
  holds_.erase(worker);
  previous_.erase(worker);
}

}  // namespace rehearsal::sim
