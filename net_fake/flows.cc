#include "net_fake/flows.h"

#include <algorithm>
#include <utility>

namespace rehearsal::net_fake {
namespace {

constexpr __int128 kBillion = 1'000'000'000;

// One way through one machine's network card, or one link.
struct Resource {
  uint64_t left = 0;   // bytes a second that nobody has yet
  uint64_t users = 0;  // flows without a rate yet
  [[nodiscard]] uint64_t share() const { return users > 0 ? left / users : UINT64_MAX; }
};

}  // namespace

void Flow::push(Frame&& frame, uint64_t bytes, Duration delay, uint64_t bytes_per_second) {
  frames_.push({std::move(frame), bytes, delay, bytes_per_second});
  if (frames_.size() > 1) return;
  begin_first();
  if (!stalled_) flows_.begin(*this);
}

void Flow::begin_first() { left_ = kBillion * frames_.front().bytes; }

uint64_t Flow::drop_last(uint64_t count) {
  uint64_t bytes = 0;
  for (; count > 0; --count) bytes += frames_.pop_back().bytes;
  if (frames_.empty() && !stalled_) flows_.end(*this);
  return bytes;
}

void Flow::set_stalled(bool stalled) {
  if (stalled == stalled_) return;
  stalled_ = stalled;
  if (frames_.empty()) return;
  if (stalled) {
    flows_.end(*this);
  } else {
    flows_.begin(*this);
  }
}

void Flows::begin(Flow& flow) {
  settle();
  active_.push_back(&flow);
  share();
  schedule_next();
}

void Flows::end(Flow& flow) {
  if (std::find(active_.begin(), active_.end(), &flow) == active_.end()) return;
  settle();
  std::erase(active_, &flow);
  share();
  schedule_next();
}

void Flows::settle() {
  const Instant now = schedule_.now();
  const __int128 passed = (now - settled_).count();
  settled_ = now;
  for (Flow* flow : active_)
    flow->left_ = std::max<__int128>(0, flow->left_ - passed * flow->rate_);
}

// Progressive filling: all rates rise together until a resource is full; its flows keep theirs.
void Flows::share() {
  std::map<WorkerId, Resource> out;
  std::map<WorkerId, Resource> in;
  for (const Flow* flow : active_) {
    Resource& sender = out.try_emplace(flow->from_, Resource{capacity_}).first->second;
    Resource& receiver = in.try_emplace(flow->to_, Resource{capacity_}).first->second;
    ++sender.users;
    ++receiver.users;
  }
  const auto limit = [&](Flow& flow) {
    const uint64_t link = flow.frames_.front().bytes_per_second;
    return std::min(
        {out.at(flow.from_).share(), in.at(flow.to_).share(), link > 0 ? link : UINT64_MAX});
  };
  std::vector<Flow*> rising = active_;
  while (!rising.empty()) {
    uint64_t full = UINT64_MAX;
    for (Flow* flow : rising) full = std::min(full, limit(*flow));
    // Those that meet the limit first; what they take is the others' no more.
    const auto met = std::find_if(rising.begin(), rising.end(),
                                  [&](Flow* flow) { return limit(*flow) == full; });
    Flow& flow = **met;
    flow.rate_ = std::max<uint64_t>(1, full);
    for (Resource* resource : {&out.at(flow.from_), &in.at(flow.to_)}) {
      resource->left -= std::min(resource->left, full);
      --resource->users;
    }
    rising.erase(met);
  }
}

void Flows::schedule_next() {
  ++generation_;
  if (active_.empty()) return;
  __int128 soonest = INT64_MAX;
  for (const Flow* flow : active_)
    soonest = std::min(soonest, (flow->left_ + flow->rate_ - 1) / flow->rate_);
  schedule_.at(schedule_.now() + Duration(static_cast<int64_t>(soonest)), *this, generation_);
}

void Flows::happen(uint64_t) {
  settle();
  std::vector<std::pair<Flow*, Flow::Carried>> done;
  for (Flow* flow : active_)
    if (flow->left_ == 0) done.emplace_back(flow, flow->frames_.pop());
  for (const auto& [flow, frame] : done) {
    if (flow->frames_.empty()) {
      std::erase(active_, flow);
    } else {
      flow->begin_first();
    }
  }
  share();
  schedule_next();
  for (auto& [flow, frame] : done)
    flow->end_.carried(std::move(frame.frame), frame.bytes, frame.delay);
}

}  // namespace rehearsal::net_fake
