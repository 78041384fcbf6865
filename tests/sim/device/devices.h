#pragma once

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <regex>
#include <string>

#include "sim/simulated_devices.h"

namespace rehearsal::sim {

inline torch::Device sim_device(int index = 0) {
  return {SimulatedDevices::kType, static_cast<c10::DeviceIndex>(index)};
}

inline c10::Stream current_stream(int index = 0) {
  return c10::impl::VirtualGuardImpl(SimulatedDevices::kType).getStream(sim_device(index));
}

// From here on `later` does nothing before `earlier` has done what it has now.
inline void wait_for(const c10::Stream& later, const c10::Stream& earlier) {
  c10::Event event(SimulatedDevices::kType);
  event.record(earlier);
  event.block(later);
}

// All that was found, and nothing if nothing was.
inline std::string problems_of(SimulatedDevices& devices) {
  try {
    devices.check();
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

// A report, with N for the numbers of lines.
inline std::string without_lines(const std::string& report) {
  return std::regex_replace(report, std::regex("\\.cc:[0-9]+"), ".cc:N");
}

}  // namespace rehearsal::sim
