#include "core/autograd/context_gradients.h"

#include <algorithm>
#include <utility>

namespace rehearsal {

void ContextGradients::keep(const PassName& pass, LeafGradients added,
                            std::set<WorkerId> neighbours) {
  parts_[pass.starter].unsettled[pass.id] = {std::move(added), std::move(neighbours)};
}

std::optional<std::set<WorkerId>> ContextGradients::take_back(const PassId& pass) {
  for (auto& [starter, part] : parts_)
    if (auto kept = part.unsettled.extract(pass); !kept.empty())
      return std::move(kept.mapped().neighbours);
  return std::nullopt;
}

void ContextGradients::settle(const PassName& pass) {
  const auto part = parts_.find(pass.starter);
  if (part == parts_.end()) return;
  const auto was_taken_back = [&pass](uint64_t epoch) {
    return std::find(pass.taken_back.begin(), pass.taken_back.end(), epoch) !=
           pass.taken_back.end();
  };
  auto& [settled, unsettled] = part->second;
  const auto has_ended = [&pass](const auto& one) {
    return one.first.starter_incarnation == pass.id.starter_incarnation &&
           one.first.epoch < pass.settled;
  };
  if (std::none_of(unsettled.begin(), unsettled.end(), has_ended)) return;
  LeafGradients added = settled;
  for (const auto& one : unsettled)
    if (has_ended(one) && !was_taken_back(one.first.epoch)) added.add_all(one.second.added);
  settled = std::move(added);
  std::erase_if(unsettled, has_ended);
}

bool ContextGradients::has_unsettled(Incarnation starter) const {
  for (const auto& [worker, part] : parts_)
    for (const auto& [id, kept] : part.unsettled)
      if (id.starter_incarnation == starter) return true;
  return false;
}

void ContextGradients::replace(LeafGradients gradients) {
  replaced_ = std::move(gradients);
  parts_.clear();
}

LeafGradients ContextGradients::sum() const {
  LeafGradients sum = replaced_;
  for (const auto& [starter, part] : parts_) {
    LeafGradients of_starter = part.settled;
    for (const auto& [id, kept] : part.unsettled) of_starter.add_all(kept.added);
    sum.add_all(of_starter);
  }
  return sum;
}

size_t ContextGradients::size() const {
  size_t size = replaced_.all().size();
  for (const auto& [starter, part] : parts_) {
    size = std::max(size, part.settled.all().size());
    for (const auto& [id, kept] : part.unsettled) size = std::max(size, kept.added.all().size());
  }
  return size;
}

}  // namespace rehearsal
