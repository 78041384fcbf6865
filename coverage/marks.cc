#include "coverage/marks.h"

namespace rehearsal::coverage {

void Marks::on_event(const Event& event) {
  if (event.kind == EventKind::mark) {
    const auto found = counts_.find(event.text);
    if (found == counts_.end())
      counts_.emplace(event.text, 1);
    else
      ++found->second;
  }
  if (next_ != nullptr) next_->on_event(event);
}

uint64_t Marks::count(std::string_view name) const {
  const auto found = counts_.find(name);
  return found == counts_.end() ? 0 : found->second;
}

void Marks::add(const Marks& other) {
  for (const auto& [name, count] : other.counts_) counts_[name] += count;
}

std::string Marks::text() const {
  std::string lines;
  for (const auto& [name, count] : counts_) lines += name + " " + std::to_string(count) + "\n";
  return lines;
}

}  // namespace rehearsal::coverage
