#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/trace.h"

namespace rehearsal::observe {

// Hands every event to several traces, in order. They outlive it.
class Traces final : public Trace {
 public:
  Traces() = default;
  explicit Traces(std::vector<Trace*> traces) : traces_(std::move(traces)) {}

  // Before the first event. Null is nobody.
  void add(Trace* trace) {
    if (trace != nullptr) traces_.push_back(trace);
  }
  [[nodiscard]] bool empty() const { return traces_.empty(); }

  void on_event(const Event& event) override {
    for (Trace* trace : traces_) trace->on_event(event);
  }
  [[nodiscard]] bool hears_notes() const override {
    return std::ranges::any_of(traces_, [](Trace* trace) { return trace->hears_notes(); });
  }

 private:
  std::vector<Trace*> traces_;
};

}  // namespace rehearsal::observe
