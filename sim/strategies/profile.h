#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net_fake/schedule.h"

namespace rehearsal::sim {

// How many events a chain had in a run, and the chain whose event made its first one.
struct ChainCount {
  net_fake::Chain chain;
  uint64_t events = 0;
  std::optional<net_fake::Chain> parent;
  auto operator<=>(const ChainCount&) const = default;
};

// Written like `s0.1=12/x0.3`: the small lane from 0 to 1 had 12 events, the first of them made by
// stack 3 of worker 0. The letters: s and l lanes, x stacks, t timers, k links, r the rest.
[[nodiscard]] std::string to_string(const net_fake::Chain& chain);
[[nodiscard]] std::string to_string(const ChainCount& count);
[[nodiscard]] std::optional<ChainCount> parse_chain_count(std::string_view text);

// Counts the events of one run by chain, for strategies that need to know how much is to come.
class Profile {
 public:
  void scheduled(const net_fake::Chain& chain);
  void happened(const net_fake::Chain& chain);

  // Of chains that had any, in the order in which they came up: a parent is in front of its
  // children.
  [[nodiscard]] std::vector<ChainCount> counts() const;

 private:
  size_t place_of(const net_fake::Chain& chain);

  std::vector<ChainCount> counts_;
  std::map<net_fake::Chain, size_t> places_;
  std::optional<net_fake::Chain> running_;  // whose event happens
};

}  // namespace rehearsal::sim
