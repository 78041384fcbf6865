#include "core/values/device_map.h"

#include <gtest/gtest.h>

namespace rehearsal {
namespace {

std::string error_of(const std::function<void()>& code) {
  try {
    code();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceNumber, IsTheSameForEachKindOfDevice) {
  EXPECT_EQ(DeviceNumber("cuda:1"), DeviceNumber(1));
  EXPECT_EQ(DeviceNumber(c10::Device(c10::DeviceType::PrivateUse1, 1)), DeviceNumber(1));
  EXPECT_EQ(DeviceNumber("cpu"), DeviceNumber::cpu());
  EXPECT_EQ(error_of([] { DeviceNumber(-1); }), "a device has a number from 0 to 127, not -1");
  EXPECT_EQ(error_of([] { DeviceNumber("gpu:1"); }), "'gpu:1' is no device");
  EXPECT_EQ(error_of([] { DeviceNumber("cuda"); }), "'cuda' does not say which: write cuda:0");
}

TEST(DeviceMap, IsOneToOne) {
  DeviceMap map{{0, 1}, {"cpu", 0}};
  EXPECT_EQ(map.at(0), DeviceNumber(1));
  EXPECT_EQ(map.at(DeviceNumber::cpu()), DeviceNumber(0));
  EXPECT_EQ(map.at(1), std::nullopt);
  EXPECT_EQ(map.inverse(), (DeviceMap{{1, 0}, {0, "cpu"}}));
  EXPECT_EQ(DeviceMap().at(DeviceNumber::cpu()), DeviceNumber::cpu());
  EXPECT_EQ(error_of([&] { map.add(0, 2); }),
            "a device map is one to one: device 0 goes to device 1 already, and not to device 2");
}

TEST(DeviceMap, MistakesNameBothWorkersAndTheDevice) {
  const auto mistake = [](DeviceMap map, WorkerDevices from, const WorkerDevices& to) {
    from.maps["ps"] = std::move(map);
    return mistake_in_map("trainer", from, "ps", to).value_or("");
  };
  const std::string of_map = "the device map of worker 'trainer' for worker 'ps' cannot be used: ";
  const WorkerDevices two{.count = 2};
  EXPECT_EQ(mistake({{0, 1}, {1, 0}}, two, two), "");
  EXPECT_EQ(mistake({{0, 1}, {1, 1}}, two, two),
            of_map + "it is not one to one: device 0 and device 1 both go to device 1");
  EXPECT_EQ(mistake({{2, 1}}, two, two), of_map + "worker 'trainer' has no device 2: it has 2");
  EXPECT_EQ(mistake({{0, 2}}, two, two), of_map + "worker 'ps' has no device 2: it has 2");
  EXPECT_EQ(mistake({{1, 0}}, {.count = 2, .declared = {0}}, two),
            of_map + "device 1 is not among the devices that worker 'trainer' has declared");
  EXPECT_EQ(mistake({{0, 1}}, two, {.count = 2, .declared = {0}}),
            of_map + "device 1 is not among the devices that worker 'ps' has declared");
  EXPECT_EQ(mistake_in_map("trainer", two, "ps", two), std::nullopt);
}

TEST(DeviceMap, DevicesAreALineOfTheGreeting) {
  const WorkerDevices devices{.count = 2,
                              .declared = {0, 1},
                              .maps = {{"ps", {{0, 1}, {"cpu", 0}}}, {"trainer1", {}}},
                              .lending = "host 7"};
  EXPECT_EQ(to_text(devices), "2;0,1;host 7;ps=cpu>0,0>1;trainer1=;");
  EXPECT_EQ(devices_from_text(to_text(devices)), devices);
  EXPECT_EQ(devices_from_text("0;;;"), WorkerDevices{});
  for (const char* bad :
       {"", "0;", "0;;", "x;;;", "-1;;;", "999;;;", "2;0,x;;", "2;;;ps=0>;", "2;;;ps=0>1>2;",
        "2;;;=0>1;", "2;;;ps=0>1,0>2;", "2;;;ps=;ps=;", "2;;;ps=0>1"})
    EXPECT_EQ(devices_from_text(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace rehearsal
