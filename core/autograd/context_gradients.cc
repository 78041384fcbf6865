#include "core/autograd/context_gradients.h"

#include <algorithm>
#include <utility>

namespace rehearsal {
namespace {

bool says_how_ended(const PassName& pass, const PassId& former) {
  return former.starter_incarnation == pass.id.starter_incarnation && former.epoch < pass.settled;
}

}  // namespace

void ContextGradients::keep(const PassName& pass, LeafGradients added,
                            std::set<WorkerId> neighbours) {
  parts_[pass.starter].unsettled[pass.id] = {std::move(added), std::move(neighbours)};
}

bool ContextGradients::keeps(const PassId& pass) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&pass](const auto& part) { return part.second.unsettled.contains(pass); });
}

bool ContextGradients::concerned_by(const PassName& pass) const {
  const auto part = parts_.find(pass.starter);
  return part != parts_.end() &&
         std::any_of(part->second.unsettled.begin(), part->second.unsettled.end(),
                     [&pass](const auto& one) { return says_how_ended(pass, one.first); });
}

std::optional<std::set<WorkerId>> ContextGradients::take_back(const PassId& pass) {
  for (auto& [starter, part] : parts_)
    if (auto kept = part.unsettled.extract(pass); !kept.empty())
      return std::move(kept.mapped().neighbours);
  return std::nullopt;
}

void ContextGradients::settle(const PassName& pass) {
  if (!concerned_by(pass)) return;
  const auto was_taken_back = [&pass](uint64_t epoch) {
    return std::find(pass.taken_back.begin(), pass.taken_back.end(), epoch) !=
           pass.taken_back.end();
  };
  auto& [settled, unsettled] = parts_.at(pass.starter);
  LeafGradients added = settled;
  for (const auto& [id, kept] : unsettled)
    if (says_how_ended(pass, id) && !was_taken_back(id.epoch)) added.add_all(kept.added);
  settled = std::move(added);
  std::erase_if(unsettled, [&pass](const auto& one) { return says_how_ended(pass, one.first); });
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
