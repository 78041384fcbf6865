#include "core/nn/pipeline_turns.h"

#include <algorithm>
#include <utility>

namespace rehearsal {

PipelineTurns::PipelineTurns(std::shared_ptr<NodeStrand> strand, std::vector<PipelineAction> order)
    : strand_(std::move(strand)),
      order_(std::move(order)),
      divides_backwards_(std::ranges::any_of(order_, [](const PipelineAction& action) {
        return action.pass == PipelinePass::weights;
      })) {
  for (const PipelineAction& action : order_) entries_.try_emplace(action);
}

void PipelineTurns::begin(const PipelineAction& action, UniqueFunction<void(Status)> begun) {
  strand_->post([self = shared_from_this(), action, begun = std::move(begun)]() mutable {
    self->take_begin(action, std::move(begun));
  });
}

void PipelineTurns::end(const PipelineAction& action) {
  strand_->post([self = shared_from_this(), action] { self->take_end(action); });
}

void PipelineTurns::end_backwards(uint32_t micro_batch) {
  strand_->post([self = shared_from_this(), micro_batch] {
    for (const PipelineAction& action : self->order_)
      if (action.micro_batch == micro_batch && action.pass != PipelinePass::forward)
        self->take_end(action);
  });
}

void PipelineTurns::abandon(const std::string& reason) {
  strand_->post([self = shared_from_this(), reason] { self->take_abandon(reason); });
}

Future<std::vector<PipelineSpan>> PipelineTurns::spans() {
  const Promise<std::vector<PipelineSpan>> promise(strand_);
  strand_->post([self = shared_from_this(), promise] {
    std::vector<PipelineSpan> spans;
    for (const PipelineAction& action : self->order_) {
      const Entry& entry = self->entries_.at(action);
      if (entry.began >= 0 && entry.done) spans.push_back({action, entry.began, entry.ended});
    }
    promise.complete(std::move(spans));
  });
  return promise.future();
}

int64_t PipelineTurns::now() const { return strand_->runtime().now().time_since_epoch().count(); }

Error PipelineTurns::error(const std::string& text) const {
  return {.kind = ErrorKind::cancelled, .text = text, .worker = strand_->name()};
}

void PipelineTurns::take_begin(const PipelineAction& action, UniqueFunction<void(Status)> begun) {
  const auto found = entries_.find(action);
  if (found == entries_.end()) {
    Error failure = error(to_string(action) + " is no action of a pipeline here");
    failure.kind = ErrorKind::bad_arguments;
    return begun(std::move(failure));
  }
  if (abandoned_) return begun(error(*abandoned_));
  Entry& entry = found->second;
  if (entry.done || entry.began >= 0 || entry.waiting)
    return begun(error("the turn of " + to_string(action) + " was taken already"));
  if (order_[next_] != action) {
    entry.waiting = std::move(begun);
    return;
  }
  entry.began = now();
  begun(Unit{});
}

void PipelineTurns::take_end(const PipelineAction& action) {
  const auto found = entries_.find(action);
  if (found == entries_.end() || found->second.done) return;
  found->second.done = true;
  found->second.ended = now();
  if (abandoned_) return;
  while (next_ < order_.size() && entries_.at(order_[next_]).done) ++next_;
  if (next_ == order_.size()) return;
  Entry& next = entries_.at(order_[next_]);
  if (!next.waiting) return;
  next.began = now();
  std::exchange(next.waiting, nullptr)(Unit{});
}

void PipelineTurns::take_abandon(const std::string& reason) {
  if (abandoned_) return;
  abandoned_ = reason;
  for (auto& [action, entry] : entries_)
    if (entry.waiting) std::exchange(entry.waiting, nullptr)(error(reason));
}

}  // namespace rehearsal
