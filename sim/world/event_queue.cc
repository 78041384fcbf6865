#include "sim/world/event_queue.h"

#include <algorithm>

#include "core/base/check.h"

namespace rehearsal::sim {
namespace {

constexpr size_t kChildren = 4;

using net_fake::Chain;

// Of events, and of what a strategy is told of them.
template <class T>
bool earlier(const T& one, const T& other) {
  return one.when != other.when ? one.when < other.when : one.serial < other.serial;
}

// The same order as one number, which is compared without a jump: of the children of a node any may
// be the first. No instant is before the beginning.
using Rank = unsigned __int128;
Rank rank_of(const EventQueue::Event& event) {
  return static_cast<Rank>(event.when.time_since_epoch().count()) << 64 | event.serial;
}

// Whether it is what the receiver of these frames is told of their link.
bool is_news_of(const Chain& lane, const Chain& chain) {
  return (chain.kind == Chain::Kind::news || chain.kind == Chain::Kind::closing) &&
         chain.first == lane.second && chain.second == lane.first;
}

// A frame does not overtake what is to be told about its connection.
void drop_frames_behind_news(std::vector<Enabled>& enabled) {
  std::vector<Enabled> news;
  for (const Enabled& entry : enabled)
    if (entry.chain.kind == Chain::Kind::news || entry.chain.kind == Chain::Kind::closing)
      news.push_back(entry);
  if (news.empty()) return;
  std::erase_if(enabled, [&news](const Enabled& frame) {
    const Chain::Kind kind = frame.chain.kind;
    if (kind != Chain::Kind::small_lane && kind != Chain::Kind::large_lane) return false;
    return std::any_of(news.begin(), news.end(), [&frame](const Enabled& entry) {
      return is_news_of(frame.chain, entry.chain) && earlier(entry, frame);
    });
  });
}

}  // namespace

void EventQueue::at(Instant when, net_fake::Occurrence& what, uint64_t ticket) {
  if (heap_.size() >= sweep_at_) sweep();
  if (profile_ != nullptr) profile_->scheduled(what.chain(ticket));
  heap_.push_back({std::max(when, now_), next_serial_++, &what, ticket});
  sift_up(heap_.size() - 1);
}

std::optional<EventQueue::Event> EventQueue::peek() {
  while (!heap_.empty()) {
    const Event& first = heap_.front();
    if (first.what->due(first.ticket)) return strategy_ != nullptr ? choose() : first;
    remove(0);
  }
  return std::nullopt;
}

void EventQueue::take(const Event& next) {
  const Event* const place = find(next.serial);
  REHEARSAL_CHECK(place != nullptr, next.serial);
  now_ = std::max(now_, next.when);
  chosen_ = 0;
  remove(static_cast<size_t>(place - heap_.data()));
  if (strategy_ != nullptr) strategy_->happened(next.what->chain(next.ticket));
  if (profile_ != nullptr) profile_->happened(next.what->chain(next.ticket));
}

// The next event is nearly always in front.
const EventQueue::Event* EventQueue::find(uint64_t serial) const {
  const auto found = std::find_if(heap_.begin(), heap_.end(),
                                  [serial](const Event& event) { return event.serial == serial; });
  return found != heap_.end() ? &*found : nullptr;
}

void EventQueue::set_strategy(Strategy* strategy, Duration window) {
  strategy_ = strategy;
  window_ = window;
  chosen_ = 0;
}

// The same event until it has happened or was called off, however often somebody looks.
EventQueue::Event EventQueue::choose() {
  if (chosen_ != 0)
    if (const Event* event = find(chosen_); event != nullptr && event->what->due(event->ticket))
      return *event;
  gather_enabled(heap_.front().when + window_);
  size_t place = 0;
  if (enabled_.size() > 1) {
    place = strategy_->pick(enabled_);
    widths_.push_back(static_cast<uint8_t>(std::min<size_t>(enabled_.size(), UINT8_MAX)));
  }
  REHEARSAL_CHECK(place < enabled_.size(), place);
  chosen_ = enabled_[place].serial;
  return *find(chosen_);
}

std::vector<Enabled> EventQueue::heads() {
  gather_enabled(Instant::max());
  return enabled_;
}

EventQueue::Event EventQueue::event(uint64_t serial) const {
  const Event* const event = find(serial);
  REHEARSAL_CHECK(event != nullptr, serial);
  return *event;
}

void EventQueue::gather_enabled(Instant last) {
  enabled_.clear();
  for (const Event& event : heap_) {
    if (event.when > last || !event.what->due(event.ticket)) continue;
    const Enabled entry{event.what->chain(event.ticket), event.what->worker(event.ticket),
                        event.when, event.serial};
    const auto same = std::find_if(enabled_.begin(), enabled_.end(), [&](const Enabled& other) {
      return other.chain == entry.chain;
    });
    if (same == enabled_.end()) {
      enabled_.push_back(entry);
    } else if (earlier(entry, *same)) {
      *same = entry;
    }
  }
  drop_frames_behind_news(enabled_);
  std::sort(enabled_.begin(), enabled_.end(), earlier<Enabled>);
}

// Costs as much as the events it looks at, and comes again only when their number has doubled.
void EventQueue::sweep() {
  std::erase_if(heap_, [](const Event& event) { return !event.what->due(event.ticket); });
  for (size_t i = heap_.size() / kChildren + 1; i-- > 0;)
    if (i < heap_.size()) sift_down(i);
  sweep_at_ = std::max<size_t>(1024, heap_.size() * 2);
}

void EventQueue::remove(size_t at) {
  heap_[at] = heap_.back();
  heap_.pop_back();
  if (at == heap_.size()) return;
  sift_down(at);
  if (at > 0) sift_up(at);
}

void EventQueue::sift_up(size_t at) {
  const Event moving = heap_[at];
  while (at > 0) {
    const size_t parent = (at - 1) / kChildren;
    if (!earlier(moving, heap_[parent])) break;
    heap_[at] = heap_[parent];
    at = parent;
  }
  heap_[at] = moving;
}

void EventQueue::sift_down(size_t at) {
  const Event moving = heap_[at];
  while (true) {
    const size_t first = at * kChildren + 1;
    if (first >= heap_.size()) break;
    const size_t last = std::min(first + kChildren, heap_.size());
    size_t least = first;
    Rank least_rank = rank_of(heap_[first]);
    for (size_t child = first + 1; child < last; ++child) {
      const Rank rank = rank_of(heap_[child]);
      const bool less = rank < least_rank;
      least = less ? child : least;
      least_rank = less ? rank : least_rank;
    }
    if (least_rank > rank_of(moving)) break;
    heap_[at] = heap_[least];
    at = least;
  }
  heap_[at] = moving;
}

}  // namespace rehearsal::sim
