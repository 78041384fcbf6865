#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/trace.h"

namespace rehearsal::doubles {

// Keeps every event of a node.
class RecordingTrace final : public Trace {
 public:
  struct Entry {
    Event event;  // its texts are empty: see below
    std::string text;
    std::string value;
  };

  void on_event(const Event& event) override {
    entries_.push_back({event, std::string(event.text), std::string(event.value)});
    entries_.back().event.text = {};
    entries_.back().event.value = {};
  }

  // Set before a node is given it.
  bool notes_are_heard = true;
  [[nodiscard]] bool hears_notes() const override { return notes_are_heard; }

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] size_t count(EventKind kind) const {
    return static_cast<size_t>(std::ranges::count_if(
        entries_, [kind](const Entry& entry) { return entry.event.kind == kind; }));
  }
  [[nodiscard]] std::vector<Entry> all(EventKind kind) const {
    std::vector<Entry> found;
    std::ranges::copy_if(entries_, std::back_inserter(found),
                         [kind](const Entry& entry) { return entry.event.kind == kind; });
    return found;
  }

  // How often the branch of this name was reached.
  [[nodiscard]] size_t marked(std::string_view name) const {
    return static_cast<size_t>(std::ranges::count_if(entries_, [name](const Entry& entry) {
      return entry.event.kind == EventKind::mark && entry.text == name;
    }));
  }
  void clear() { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace rehearsal::doubles
