#include "sim/hunt/scene_history.h"

#include <algorithm>
#include <utility>

#include "core/base/symbols.h"
#include "sim/hunt/noted_throws.h"

namespace rehearsal::sim {

void SceneHistory::begin(const std::vector<std::string>& workers) {
  workers_ = workers;
  entries_.clear();
  if (spans_ != nullptr) spans_->begin(workers);
}

void SceneHistory::on_throw(const std::type_info& type, const std::exception* thrown,
                            const void* object) {
  const std::string what = thrown == nullptr ? "" : std::string(": ") + thrown->what();
  last_[next_++ % last_.size()] = {.object = object,
                                   .place = entries_.size(),
                                   .text = type_name(type) + what,
                                   .stack = source_.calling_stack()};
}

void SceneHistory::ended_by(const std::exception_ptr& thrown) {
  const bool has_failed = std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.kind == EntryKind::failed;
  });
  const auto found = std::find_if(last_.begin(), last_.end(), [&thrown](const Throw& one) {
    return one.object != nullptr && one.object == object_of(thrown);
  });
  if (thrown == nullptr || has_failed || found == last_.end() || entries_.empty()) return;
  const size_t place = std::min(found->place, entries_.size());
  const Instant when = place == 0 ? Instant{} : entries_[place - 1].when;
  const std::array<Entry, 2> marks = {
      {{.kind = EntryKind::thrown,
        .when = when,
        .text = found->text,
        .detail = "the scene",
        .stack = found->stack},
       {.kind = EntryKind::failed, .when = when, .text = "exception"}}};
  entries_.insert(entries_.begin() + static_cast<ptrdiff_t>(place), marks.begin(), marks.end());
}

Chronicle SceneHistory::chronicle() const {
  History history;
  history.begin(workers_);
  for (const Entry& entry : entries_) history.add(entry);
  return chronicle_of(history);
}

}  // namespace rehearsal::sim
