// Goal: a worker is not begun with devices that its process has not. Method: kinds and counts, with
// and without simulated devices.
#include "real_net/worker/devices_check.h"

#include <gtest/gtest.h>

#include "sim/simulated_devices.h"

namespace rehearsal::real {
namespace {

TEST(DevicesCheck, ThoseOfTheProcessAreFine) {
  EXPECT_TRUE(check_devices({}, false).ok());
  EXPECT_TRUE(check_devices({}, true).ok());
  const sim::SimulatedDevices devices({.count = 2, .for_all_threads = true});
  EXPECT_TRUE(check_devices(devices.here(), false).ok());
}

TEST(DevicesCheck, OthersAreToldInOneLine) {
  const auto why = [](const DevicesHere& devices, bool is_recorded = false) {
    const Status fits = check_devices(devices, is_recorded);
    return fits.ok() ? "" : fits.error().text;
  };
  EXPECT_EQ(why({.type = c10::DeviceType::CUDA, .count = 1}),
            "WorkerOptions::node.devices names 1 devices of the kind 'cuda': this process has 0");
  EXPECT_EQ(why({.type = c10::DeviceType::CPU, .count = 1}),
            "WorkerOptions::node.devices names 1 devices of the kind 'cpu': this process has 0");
  const sim::SimulatedDevices devices({.count = 2, .for_all_threads = true});
  DevicesHere more = devices.here();
  more.count = 3;
  EXPECT_EQ(why(more),
            "WorkerOptions::node.devices names 3 devices of the kind 'sim': this process has 2");
  more.count = -1;
  EXPECT_EQ(why(more),
            "WorkerOptions::node.devices names -1 devices of the kind 'sim': this process has 2");
  EXPECT_EQ(why(devices.here(), true),
            "a worker with devices cannot be recorded: name no folder for records, or no devices");
}

}  // namespace
}  // namespace rehearsal::real
