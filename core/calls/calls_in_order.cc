#include "core/calls/calls_in_order.h"

#include <algorithm>
#include <utility>

namespace rehearsal {

void CallsInOrder::ready(const CausalId& order, const CausalId& call, Task start) {
  const auto found = calls_.find(order);
  if (found == calls_.end() || found->second.front().call == call) return start();
  std::deque<Entry>& calls = found->second;
  const auto entry = std::find_if(calls.begin(), calls.end(),
                                  [&call](const Entry& one) { return one.call == call; });
  if (entry == calls.end()) return start();  // It has ended already.
  entry->start = std::move(start);
}

void CallsInOrder::ended(const CausalId& order, const CausalId& call) {
  const auto found = calls_.find(order);
  if (found == calls_.end()) return;
  std::deque<Entry>& calls = found->second;
  const bool was_first = calls.front().call == call;
  std::erase_if(calls, [&call](const Entry& one) { return one.call == call; });
  if (calls.empty()) {
    calls_.erase(found);
  } else if (Task start = was_first ? std::exchange(calls.front().start, nullptr) : nullptr) {
    start();
  }
}

}  // namespace rehearsal
