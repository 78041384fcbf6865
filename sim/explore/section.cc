#include "sim/explore/section.h"

#include <algorithm>
#include <utility>

namespace rehearsal::sim::explore {
namespace {

using net_fake::Chain;
using Kind = Transition::Kind;

// Empty: it is nothing that the section decides about.
std::optional<Transition> transition_of(const Chain& chain) {
  switch (chain.kind) {
    case Chain::Kind::small_lane:
      return Transition{Kind::small_lane, chain.first, chain.second};
    case Chain::Kind::large_lane:
      return Transition{Kind::large_lane, chain.first, chain.second};
    case Chain::Kind::stack:
      return Transition{Kind::run, chain.first, chain.second};
    case Chain::Kind::news:
      return Transition{Kind::news, chain.first, chain.second};
    case Chain::Kind::closing:
      return Transition{Kind::closed, chain.first, chain.second};
    case Chain::Kind::connecting:
      return Transition{Kind::connect, chain.first, chain.second};
    case Chain::Kind::timers:
    case Chain::Kind::rest:
      break;
  }
  return std::nullopt;
}

// Whether the one is a frame on the link that the other makes.
bool carries(const Transition& frame, const Transition& link) {
  return (frame.kind == Kind::small_lane || frame.kind == Kind::large_lane) &&
         std::minmax(frame.first, frame.second) == std::minmax(link.first, link.second);
}

}  // namespace

bool Section::run(ClusterParts& parts) {
  parts_ = &parts;
  for (const Transition& fault : faults_) to_come_.push_back({fault, {}});
  parts.decisions().set_chooser(this);
  bool wanted = true;
  while (!parts.failed()) {
    const std::vector<Candidate> enabled = candidates();
    const size_t picked = guide_.pick(enabled);
    wanted = picked != Guide::kStop || enabled.empty();
    if (picked == Guide::kStop) break;
    first_serials_.push_back(parts.queue().next_serial());
    steps_.push_back(enabled.at(picked).transition);
    happen(enabled[picked]);
  }
  parts.decisions().set_chooser(nullptr);
  parts_ = nullptr;
  return wanted;
}

// In the order of instants; faults behind everything. A new connection takes away what is still on
// its way on the old one. The loss of the old one could have done that before: so it waits.
std::vector<Candidate> Section::candidates() {
  std::vector<Candidate> candidates;
  for (const Enabled& head : parts_->queue().heads())
    if (const auto transition = transition_of(head.chain))
      candidates.push_back({*transition, head.serial, causes_of(head.serial)});
  std::erase_if(candidates, [&candidates](const Candidate& candidate) {
    return candidate.transition.kind == Kind::connect &&
           std::any_of(candidates.begin(), candidates.end(), [&candidate](const Candidate& other) {
             return carries(other.transition, candidate.transition);
           });
  });
  for (const Fault& fault : to_come_) candidates.push_back({fault.transition, 0, fault.causes});
  return candidates;
}

std::vector<size_t> Section::causes_of(uint64_t serial) const {
  const auto next = std::upper_bound(first_serials_.begin(), first_serials_.end(), serial);
  if (next == first_serials_.begin()) return {};
  return {static_cast<size_t>(next - first_serials_.begin()) - 1};
}

void Section::happen(const Candidate& candidate) {
  if (candidate.event != 0) return parts_->run_event(parts_->queue().event(candidate.event));
  const Transition fault = candidate.transition;
  std::erase_if(to_come_, [&](const Fault& other) { return other.transition == fault; });
  happen_fault(fault);
}

void Section::happen_fault(const Transition& fault) {
  const std::vector<std::string>& names = parts_->network().names();
  const WorkerId first{fault.first};
  switch (fault.kind) {
    case Kind::cut:
      return parts_->network().reset(names[fault.first], names[fault.second]);
    case Kind::give_up:
      return parts_->give_up(first, WorkerId{fault.second});
    case Kind::crash:
      break;
    default:
      REHEARSAL_CHECK(false, to_string(fault), "is no fault");
  }
  parts_->crash({.worker = first});
  std::erase_if(to_come_, [&](const Fault& other) {
    return other.transition.kind == Kind::give_up && other.transition.first == fault.first;
  });
  for (uint32_t other = 0; other < names.size(); ++other)
    if (WorkerId{other} != first && !parts_->life(WorkerId{other}).over())
      to_come_.push_back({{Kind::give_up, other, fault.first}, {steps_.size() - 1}});
}

// A link that breaks takes any suffix of what is on its way with it.
std::optional<uint64_t> Section::choose(const Key& key, uint64_t n) {
  if (key.kind != DecisionKind::lost_suffix || n < 2) return std::nullopt;
  return guide_.choose(n);
}

void Section::on_event(const Event& event) {
  if (parts_ == nullptr || steps_.empty()) return;
  if (event.kind == EventKind::frame_sent) {
    sent_[{event.worker, event.peer, event.number}] = steps_.size() - 1;
  } else if (event.kind == EventKind::frame) {
    const auto sent = sent_.find({event.peer, event.worker, event.number});
    if (sent != sent_.end() && sent->second != steps_.size() - 1)
      guide_.received_from(sent->second);
  }
}

}  // namespace rehearsal::sim::explore
