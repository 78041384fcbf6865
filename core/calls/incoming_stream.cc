#include "core/calls/incoming_stream.h"

#include <algorithm>

#include "core/base/check.h"

namespace rehearsal {

bool IncomingStream::note(uint64_t position) {
  if (position >= credit_ || (end_ && position >= end_->items)) return false;
  if (!arrived_.insert(position)) return false;
  end_of_arrived_ = std::max(end_of_arrived_, position + 1);
  return true;
}

bool IncomingStream::note_end(uint64_t items, MaybeError error) {
  if (end_ || items < end_of_arrived_ || items > credit_) return false;
  end_ = End{items, std::move(error)};
  return true;
}

void IncomingStream::put(uint64_t position, Result<Answer> value, const Mutants& mutants) {
  REHEARSAL_CHECK(arrived_.contains(position), position);
  if (mutants.on(Mutant::stream_ignores_order)) position = ordered_ + out_of_order_.size();
  const bool fresh = out_of_order_.emplace(position, std::move(value)).second;
  REHEARSAL_CHECK(fresh, position);
  for (auto next = out_of_order_.begin();
       next != out_of_order_.end() && next->first == ordered_ && next->second.ok();
       next = out_of_order_.erase(next), ++ordered_)
    ready_.push_back(std::move(next->second).value());
}

void IncomingStream::hand_on() {
  while (!takers_.empty() && (!ready_.empty() || finished_)) {
    ValueTaker taker = std::move(takers_.front());
    takers_.pop_front();
    if (!ready_.empty()) {
      Answer value = std::move(ready_.front());
      ready_.pop_front();
      ++taken_;
      taker(std::optional(std::move(value)));
    } else if (finished_->ok()) {
      taker(std::optional<Answer>());
    } else {
      taker(finished_->error());
    }
  }
}

std::optional<Status> IncomingStream::outcome() const {
  const auto next = out_of_order_.find(ordered_);
  if (next != out_of_order_.end()) return Status(next->second.error());
  if (!end_ || ordered_ < end_->items) return std::nullopt;
  if (end_->error) return Status(*end_->error);
  return Status(Unit{});
}

// In halves, so that not every value costs a message.
uint64_t IncomingStream::more_credit() {
  const uint64_t wanted = taken_ + window_;
  if (end_ || finished_ || wanted - credit_ < std::max<uint64_t>(1, window_ / 2)) return 0;
  return credit_ = wanted;
}

void IncomingStream::take(ValueTaker taker) {
  takers_.push_back(std::move(taker));
  hand_on();
}

std::vector<Answer> IncomingStream::finish(Status outcome) {
  REHEARSAL_CHECK(!finished_);
  finished_ = std::move(outcome);
  std::vector<Answer> left;
  for (auto& [position, value] : out_of_order_)
    if (value.ok()) left.push_back(std::move(value).value());
  out_of_order_.clear();
  hand_on();
  return left;
}

}  // namespace rehearsal
