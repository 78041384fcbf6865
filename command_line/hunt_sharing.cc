#include "command_line/hunt_sharing.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rehearsal::command_line {
namespace {

constexpr double kForAllAlike = 0.25;

// The price in events of all that comes before a run's first one: its stacks and tables.
constexpr uint64_t kCostOfARun = 100;

}  // namespace

HuntSharing::HuntSharing(const std::vector<std::string>& scenarios) {
  std::map<std::string, size_t> numbers;
  for (const std::string& scenario : scenarios)
    ways_.push_back({.scenario = numbers.emplace(scenario, numbers.size()).first->second});
  seen_.resize(numbers.size());
}

HuntSharing::Turn HuntSharing::next(size_t task) {
  results_.take_until(task, [this](const Result& result) { take(result); });
  const auto least = std::ranges::min_element(ways_, {}, &Way::position);
  const auto way = static_cast<size_t>(least - ways_.begin());
  const double cost =
      least->done == 0 ? 1 : static_cast<double>(least->cost) / static_cast<double>(least->done);
  least->position += cost / shares()[way];
  way_of_.emplace(task, way);
  return {way, least->given++};
}

void HuntSharing::learn(size_t task, const RunOutcome& outcome) {
  uint64_t cost = kCostOfARun;
  for (const auto& [worker, events] : outcome.decisions) cost += events;
  results_.put(task, {way_of_.extract(task).mapped(), cost, outcome.features});
}

void HuntSharing::take(const Result& result) {
  Way& way = ways_[result.way];
  ++way.done;
  way.cost += result.cost;
  for (const uint32_t feature : result.features) {
    const auto [sighting, is_new] = seen_[way.scenario].emplace(feature, Sighting{result.way});
    if (is_new)
      ++way.singles;
    else if (std::exchange(sighting->second.is_single, false))
      --ways_[sighting->second.way].singles;
  }
}

std::vector<double> HuntSharing::shares() const {
  std::vector<double> expected;  // new features for an event
  for (const Way& way : ways_)
    expected.push_back(
        way.cost == 0 ? 0 : static_cast<double>(way.singles) / static_cast<double>(way.cost));
  const double all = std::accumulate(expected.begin(), expected.end(), 0.0);
  const double alike = 1 / static_cast<double>(ways_.size());
  for (double& share : expected)
    share = all == 0 ? alike : kForAllAlike * alike + (1 - kForAllAlike) * share / all;
  return expected;
}

std::vector<HuntSharing::Row> HuntSharing::rows() const {
  std::vector<Row> rows;
  for (const Way& way : ways_)
    rows.push_back(
        {way.given,
         way.done == 0 ? 0 : static_cast<double>(way.singles) / static_cast<double>(way.done)});
  return rows;
}

}  // namespace rehearsal::command_line
