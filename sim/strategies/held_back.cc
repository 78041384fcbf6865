#include "sim/strategies/strategies.h"

namespace rehearsal::sim {
namespace {

using net_fake::Chain;

constexpr uint64_t kHeldMax = uint64_t{1} << 32;

bool between_workers(const Chain& chain) {
  return chain.kind == Chain::Kind::small_lane || chain.kind == Chain::Kind::large_lane ||
         chain.kind == Chain::Kind::news || chain.kind == Chain::Kind::closing ||
         chain.kind == Chain::Kind::connecting;
}

}  // namespace

Key hold_key(const Chain& chain, uint64_t number) {
  Key key{.kind = net_fake::DecisionKind::hold,
          .subject = {WorkerId{chain.first}, 0},
          .number = number,
          .occurrence = static_cast<uint64_t>(chain.kind)};
  if (between_workers(chain)) {
    key.object = {WorkerId{chain.second}, 0};
  } else {
    key.subject.life = chain.second;
  }
  return key;
}

bool HeldBack::is_held(const Chain& chain) {
  Head& head = heads_[chain];
  if (!head.limit) head.limit = decisions_.choose(hold_key(chain, head.number), kHeldMax);
  return head.passed < *head.limit;
}

size_t HeldBack::pick(const std::vector<Enabled>& enabled) {
  size_t place = 0;
  if (inner_ != nullptr) {
    place = inner_->pick(enabled);
  } else {
    while (place < enabled.size() && is_held(enabled[place].chain)) ++place;
    if (place == enabled.size()) place = 0;
  }
  for (size_t i = 0; i < place; ++i) {
    Head& head = heads_[enabled[i].chain];
    ++head.passed;
    if (inner_ != nullptr) decisions_.note(hold_key(enabled[i].chain, head.number), head.passed);
  }
  return place;
}

void HeldBack::happened(const Chain& chain) {
  if (inner_ != nullptr) inner_->happened(chain);
  Head& head = heads_[chain];
  head = {.number = head.number + 1, .passed = 0, .limit = std::nullopt};
}

}  // namespace rehearsal::sim
