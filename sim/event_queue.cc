#include "sim/event_queue.h"

#include <algorithm>

#include "core/base/check.h"

namespace rehearsal::sim {
namespace {

constexpr size_t kChildren = 4;

}  // namespace

void EventQueue::at(Instant when, net_fake::Occurrence& what, uint64_t ticket) {
  if (heap_.size() >= sweep_at_) sweep();
  heap_.push_back({std::max(when, now_), next_serial_++, &what, ticket});
  sift_up(heap_.size() - 1);
}

std::optional<EventQueue::Event> EventQueue::peek() {
  while (!heap_.empty()) {
    const Event& first = heap_.front();
    if (first.what->due(first.ticket)) return first;
    pop();
  }
  return std::nullopt;
}

void EventQueue::take(const Event& next) {
  REHEARSAL_CHECK(!heap_.empty() && heap_.front().serial == next.serial, next.serial);
  now_ = next.when;
  pop();
}

// Costs as much as the events it looks at, and comes again only when their number has doubled.
void EventQueue::sweep() {
  std::erase_if(heap_, [](const Event& event) { return !event.what->due(event.ticket); });
  for (size_t i = heap_.size() / kChildren + 1; i-- > 0;)
    if (i < heap_.size()) sift_down(i);
  sweep_at_ = std::max<size_t>(1024, heap_.size() * 2);
}

void EventQueue::pop() {
  heap_.front() = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0);
}

void EventQueue::sift_up(size_t at) {
  const Event moving = heap_[at];
  while (at > 0) {
    const size_t parent = (at - 1) / kChildren;
    if (!before(moving, heap_[parent])) break;
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
    for (size_t child = first + 1; child < last; ++child)
      if (before(heap_[child], heap_[least])) least = child;
    if (!before(heap_[least], moving)) break;
    heap_[at] = heap_[least];
    at = least;
  }
  heap_[at] = moving;
}

}  // namespace rehearsal::sim
