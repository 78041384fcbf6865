#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/base/trace.h"

namespace rehearsal::sim {

// The features that a run has shown, for a search that goes on from runs that showed something new:
// marks that were reached, who delivered what to a worker after whom, what happened to a reference
// or a context after what, and how calls and peers were lost. Each feature is a number below
// kFeatures that stands for many; two may share one.
class Features final : public Trace {
 public:
  static constexpr size_t kFeatures = size_t{1} << 16;

  void on_event(const Event& event) override;

  // In ascending order.
  [[nodiscard]] std::vector<uint32_t> seen() const;

 private:
  // The last event of an object, at any worker.
  struct Last {
    EventKind kind{};
    WorkerId worker;
  };
  void add(uint64_t hash);
  void add_delivery(const Event& event);
  void add_step_of(uint64_t object, const Event& event);

  std::bitset<kFeatures> seen_;
  std::map<WorkerId, uint64_t> deliveries_;  // the last one to each worker
  std::map<uint64_t, Last> objects_;
};

}  // namespace rehearsal::sim
