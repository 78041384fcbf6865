#pragma once

#include <cstdint>
#include <string>

namespace rehearsal::sim {

// How a run stands, for whoever looks at it from a signal handler on its thread: how often it has
// begun or ended an event, and whose event runs.
struct RunPulse {
  static constexpr uint32_t kNobody = UINT32_MAX;

  volatile uint64_t beats = 0;
  volatile uint32_t worker = kNobody;
  const std::string* volatile name = nullptr;  // the worker's; null: nobody's event runs

  void begin(uint32_t id, const std::string& its_name) {
    beats = beats + 1;
    worker = id;
    name = &its_name;
  }
  void end() {
    beats = beats + 1;
    worker = kNobody;
    name = nullptr;
  }
};

}  // namespace rehearsal::sim
