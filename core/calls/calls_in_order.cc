#include "core/calls/calls_in_order.h"

#include <utility>

namespace rehearsal {

// A call of an id that has arrived already is that call.
void CallsInOrder::arrived(const CausalId& order, const CausalId& call) {
  Calls& calls = calls_[order];
  const auto [known, fresh] = calls.numbers.try_emplace(call, calls.next);
  if (fresh) calls.by_number.emplace(calls.next++, Entry{call, {}});
}

void CallsInOrder::ready(const CausalId& order, const CausalId& call, Task start) {
  const auto found = calls_.find(order);
  if (found == calls_.end() || found->second.by_number.begin()->second.call == call) return start();
  Calls& calls = found->second;
  const auto number = calls.numbers.find(call);
  if (number == calls.numbers.end()) return start();  // It has ended already.
  calls.by_number.at(number->second).start = std::move(start);
}

Task CallsInOrder::take(const CausalId& order, const CausalId& call) {
  const auto found = calls_.find(order);
  if (found == calls_.end()) return nullptr;
  const auto number = found->second.numbers.find(call);
  if (number == found->second.numbers.end()) return nullptr;
  return std::exchange(found->second.by_number.at(number->second).start, nullptr);
}

void CallsInOrder::ended(const CausalId& order, const CausalId& call) {
  const auto found = calls_.find(order);
  if (found == calls_.end()) return;
  Calls& calls = found->second;
  const auto number = calls.numbers.find(call);
  if (number == calls.numbers.end()) return;
  const auto entry = calls.by_number.find(number->second);
  const bool was_first = entry == calls.by_number.begin();
  // The start that is dropped may own calls that come back to this.
  const Task dropped = std::move(entry->second.start);
  calls.by_number.erase(entry);
  calls.numbers.erase(number);
  if (calls.by_number.empty()) {
    calls_.erase(found);
  } else if (was_first) {
    if (Task start = std::exchange(calls.by_number.begin()->second.start, nullptr)) start();
  }
}

}  // namespace rehearsal
