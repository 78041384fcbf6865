#include <numeric>

#include "core/base/check.h"
#include "sim/strategies/strategies.h"

namespace rehearsal::sim {
namespace {

using net_fake::Chain;

// The place of the weight that `drawn` falls into. REQUIRES: drawn is less than their sum.
size_t place_of(uint64_t drawn, const std::vector<uint64_t>& weights) {
  size_t place = 0;
  while (drawn >= weights[place]) drawn -= weights[place++];
  return place;
}

uint64_t sum(const std::vector<uint64_t>& weights) {
  return std::accumulate(weights.begin(), weights.end(), uint64_t{0});
}

// Of the plan: what SURW draws; part of the keys.
constexpr uint64_t kReceiver = 0;
constexpr uint64_t kFirstIntention = 1;

bool is_lane(const Chain& chain) {
  return chain.kind == Chain::Kind::small_lane || chain.kind == Chain::Kind::large_lane;
}

}  // namespace

Remaining::Remaining(const std::vector<ChainCount>& counts) {
  for (const ChainCount& count : counts) {
    left_[count.chain].events = count.events;
    if (count.parent) {
      left_[*count.parent].children.push_back(count.chain);
    } else {
      left_[count.chain].there = true;
    }
  }
}

void Remaining::happened(const Chain& chain) {
  Left& left = left_[chain];
  left.there = true;
  if (left.events > 0) --left.events;
}

void Remaining::appeared(const Chain& chain) { left_[chain].there = true; }

uint64_t Remaining::own(const Chain& chain) const {
  const auto found = left_.find(chain);
  return found == left_.end() ? 0 : found->second.events;
}

uint64_t Remaining::with_descendants(const Chain& chain) const {
  const auto found = left_.find(chain);
  if (found == left_.end()) return 0;
  uint64_t events = found->second.events;
  for (const Chain& child : found->second.children)
    if (!left_.at(child).there) events += with_descendants(child);
  return events;
}

size_t Urw::pick(const std::vector<Enabled>& enabled) {
  for (const Enabled& event : enabled) remaining_.appeared(event.chain);
  // More than the earlier run had is possible; the benign choice must stay the first place.
  std::vector<uint64_t> weights;
  for (const Enabled& event : enabled)
    weights.push_back(std::max<uint64_t>(1, remaining_.with_descendants(event.chain)));
  const Key key{.kind = net_fake::DecisionKind::pick, .number = ++step_};
  return place_of(decisions_.choose(key, sum(weights)), weights);
}

Surw::Surw(net_fake::Decisions& decisions, const std::vector<ChainCount>& counts)
    : decisions_(decisions), remaining_(counts) {
  std::set<uint32_t> receivers;
  for (const ChainCount& count : counts)
    if (is_lane(count.chain)) receivers.insert(count.chain.second);
  if (receivers.empty()) return;
  auto drawn = receivers.begin();
  std::advance(drawn, draw_plan(decisions, kReceiver, receivers.size()));
  receiver_ = *drawn;
  for (const ChainCount& count : counts)
    if (selected(count.chain)) arrivals_.push_back(count.chain);
}

bool Surw::selected(const Chain& chain) const {
  return receiver_ && is_lane(chain) && chain.second == *receiver_;
}

// REQUIRES: there is one.
void Surw::intend_one_of(const std::vector<Chain>& chains) {
  std::vector<uint64_t> weights;
  for (const Chain& chain : chains) weights.push_back(std::max<uint64_t>(1, remaining_.own(chain)));
  const uint64_t drawn = draw_plan(decisions_, kFirstIntention + intentions_++, sum(weights));
  intention_ = chains[place_of(drawn, weights)];
}

size_t Surw::pick(const std::vector<Enabled>& enabled) {
  if (!intention_) {
    std::vector<Chain> left = arrivals_;
    std::erase_if(left, [this](const Chain& chain) { return remaining_.own(chain) == 0; });
    if (!left.empty()) intend_one_of(left);
  }
  std::vector<size_t> free;
  const auto find_free = [&] {
    for (size_t i = 0; i < enabled.size(); ++i)
      if (!selected(enabled[i].chain) || enabled[i].chain == intention_) free.push_back(i);
  };
  find_free();
  if (free.empty()) {  // The intended event is not there yet, and all others wait for it.
    std::vector<Chain> chains;
    for (const Enabled& event : enabled) chains.push_back(event.chain);
    intend_one_of(chains);
    find_free();
  }
  const Key key{.kind = net_fake::DecisionKind::pick, .number = ++step_};
  return free[decisions_.choose(key, free.size())];
}

void Surw::happened(const Chain& chain) {
  remaining_.happened(chain);
  if (chain == intention_) intention_.reset();
}

}  // namespace rehearsal::sim
