#include "core/base/future_groups.h"

#include <string>

namespace rehearsal::detail {
namespace {

// A gathering that waits for parts. It owns only those that are complete: one that is not owns it.
struct Waiting {
  Gathering gathering;
  std::vector<std::weak_ptr<FutureCore>> parts;
  CompleteParts complete;
  size_t missing = 0;
  bool has_failed = false;
};

void cancel_parts(const std::vector<std::weak_ptr<FutureCore>>& parts) {
  for (const auto& weak : parts)
    if (const auto part = weak.lock()) part->cancel();
}

// Copying and moving values runs their own code.
void finish(FutureCore& whole, Waiting& waiting) {
  for (const auto& part : waiting.complete)
    if (part != nullptr) whole.made_of(*part);
  whole.complete_by([&] { waiting.gathering.finish(whole, waiting.complete); });
}

void on_part(const std::shared_ptr<FutureCore>& whole, const std::shared_ptr<Waiting>& waiting,
             size_t position, FutureCore& part) {
  if (whole->ready()) return;
  const bool fails_first = part.error() != nullptr && !std::exchange(waiting->has_failed, true);
  const bool cancels = fails_first && waiting->gathering.if_one_fails == IfOneFails::cancel_rest;
  waiting->complete[position] = part.shared_from_this();
  --waiting->missing;
  if (fails_first && !waiting->gathering.takes_errors) whole->fail(*part.error());
  // Each of them comes here in its turn.
  if (cancels) cancel_parts(waiting->parts);
  if (waiting->missing == 0 && !whole->ready()) finish(*whole, *waiting);
}

}  // namespace

const std::shared_ptr<NodeStrand>& strand_of(const std::shared_ptr<FutureCore>& first,
                                             std::string_view who) {
  if (first == nullptr)
    throw RpcError(wrong_arguments(std::string(who) +
                                   " of no future, or of an empty one, has no worker: ask the "
                                   "worker's own if there may be none"));
  return first->strand();
}

void expect_all_there(const std::vector<std::shared_ptr<FutureCore>>& parts) {
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i] == nullptr)
      throw RpcError(wrong_arguments("future " + std::to_string(i) + " of " +
                                     std::to_string(parts.size()) +
                                     " is empty: it was never assigned"));
}

void gather_futures(const std::shared_ptr<FutureCore>& whole,
                    std::vector<std::shared_ptr<FutureCore>> parts, Gathering gathering) {
  expect_all_there(parts);
  auto waiting = std::make_shared<Waiting>();
  waiting->gathering = std::move(gathering);
  whole->strand()->post([whole, waiting, parts = std::move(parts)] {
    waiting->parts.assign(parts.begin(), parts.end());
    waiting->complete.resize(parts.size());
    waiting->missing = parts.size();
    if (parts.empty()) return finish(*whole, *waiting);
    if (!waiting->gathering.takes_errors)
      whole->set_canceller([&whole = *whole, parts = waiting->parts] {
        cancel_parts(parts);
        return whole.cancelled_error();
      });
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i]->observe(
          [whole, waiting, i](FutureCore& part) { on_part(whole, waiting, i, part); });
  });
}

}  // namespace rehearsal::detail
