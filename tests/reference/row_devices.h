#pragma once

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "core/base/stream_set.h"
#include "real_net/cuda_devices.h"
#include "sim/simulated_devices.h"

// The devices of a row's workers: simulated ones, or, with REHEARSAL_TEST_DEVICES=cuda, this
// machine's GPUs, which workers have over TCP only.
namespace rehearsal::reference {

inline bool on_cuda() {
  const char* const said = std::getenv("REHEARSAL_TEST_DEVICES");
  return said != nullptr && std::string(said) == "cuda";
}

// "sim:1", say.
inline std::string device_name(int number) {
  return (on_cuda() ? "cuda:" : "sim:") + std::to_string(number);
}

// One that the library gives no call, if the device can make more.
inline c10::Stream new_stream(c10::Device device) {
  const c10::impl::VirtualGuardImpl kind(device.type());
  return on_cuda() ? kind.getStreamFromGlobalPool(device) : kind.getNewStream(device);
}

// So many devices for all workers of the test's process.
class RowDevices {
 public:
  explicit RowDevices(int count) {
    if (on_cuda()) {
      here_ = real::cuda_devices().or_throw();
      lacks_ = here_.count < count;
      here_.count = count;
    } else {
      simulated_.emplace(sim::SimulatedDevicesOptions{.count = count, .for_all_threads = true});
      here_ = simulated_->here();
    }
  }

  [[nodiscard]] const DevicesHere& here() const { return here_; }
  [[nodiscard]] bool lacks_some() const { return lacks_; }

  // Fails the test for each wait that is missing, if that can be known.
  void check() {
    if (simulated_) EXPECT_NO_THROW(simulated_->check());
  }

 private:
  std::optional<sim::SimulatedDevices> simulated_;
  DevicesHere here_;
  bool lacks_ = false;
};

}  // namespace rehearsal::reference
