#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/strategies/strategy.h"

namespace rehearsal::sim {

// A program: so many events on each of some chains, which depend on nothing else. An order is the
// chain of each event in turn.
using Chains = std::vector<uint32_t>;
using Order = std::vector<uint32_t>;

inline net_fake::Chain lane(uint32_t number) {
  return {net_fake::Chain::Kind::small_lane, number, 0};
}

inline std::vector<Enabled> enabled_of(const Chains& left) {
  std::vector<Enabled> enabled;
  for (uint32_t chain = 0; chain < left.size(); ++chain)
    if (left[chain] > 0)
      enabled.push_back(
          {.chain = lane(chain), .worker = WorkerId{0}, .when = {}, .serial = chain + 1});
  return enabled;
}

// Runs the program; one enabled chain is no choice. `after` each event of a chain, more may be
// left.
inline Order run(Chains left, Strategy& strategy,
                 const std::function<void(uint32_t, Chains&)>& after = {}) {
  Order order;
  while (true) {
    const std::vector<Enabled> enabled = enabled_of(left);
    if (enabled.empty()) return order;
    const size_t place = enabled.size() > 1 ? strategy.pick(enabled) : 0;
    const uint32_t chain = enabled[place].chain.first;
    strategy.happened(enabled[place].chain);
    --left[chain];
    if (after) after(chain, left);
    order.push_back(chain);
  }
}

inline std::vector<Order> all_orders(const Chains& program) {
  Order order;
  for (uint32_t chain = 0; chain < program.size(); ++chain)
    order.insert(order.end(), program[chain], chain);
  std::vector<Order> orders;
  do orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return orders;
}

}  // namespace rehearsal::sim
