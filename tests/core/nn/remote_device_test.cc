#include "core/api/remote_device.h"

#include <gtest/gtest.h>

#include <string>

namespace rehearsal {
namespace {

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(RemoteDevice(text));
  } catch (const RpcError& thrown) {
    EXPECT_EQ(thrown.kind(), ErrorKind::bad_arguments);
    return thrown.error().text;
  }
  ADD_FAILURE() << "'" << text << "' was taken";
  return {};
}

std::string refused(const std::string& text, const std::string& why) {
  return "'" + text + "' is no remote device: " + why +
         "; write \"<worker>[/<device>]\" or \"rank:<n>[/<device>]\"";
}

TEST(RemoteDevice, IsReadFromBothForms) {
  // Goal: worker and device of every good text. Method: all four shapes.
  EXPECT_EQ(RemoteDevice("ps").worker().name(), "ps");
  EXPECT_EQ(RemoteDevice("ps").device(), c10::Device(c10::kCPU));
  EXPECT_EQ(RemoteDevice("ps/cuda:1").worker().name(), "ps");
  EXPECT_EQ(RemoteDevice("ps/cuda:1").device(), c10::Device(c10::kCUDA, 1));
  EXPECT_EQ(RemoteDevice("rank:12").worker().id(), WorkerId{12});
  EXPECT_EQ(RemoteDevice("rank:0/cpu").worker().id(), WorkerId{0});
  EXPECT_EQ(RemoteDevice("rank:0/cpu").device(), c10::Device(c10::kCPU));
  EXPECT_EQ(RemoteDevice(WorkerInfo{"rank:x", {3}}).worker().id(), WorkerId{3});
}

TEST(RemoteDevice, EachBadFormIsRefusedWithItsReason) {
  // Goal: an error says what is wrong and what is right. Method: one text for each reason.
  EXPECT_EQ(refusal_of(""), refused("", "it names no worker"));
  EXPECT_EQ(refusal_of("/cpu"), refused("/cpu", "it names no worker"));
  EXPECT_EQ(refusal_of("ps/"), refused("ps/", "it names no device after the '/'"));
  EXPECT_EQ(refusal_of("ps/cpu/0"), refused("ps/cpu/0", "it has more than one '/'"));
  EXPECT_EQ(refusal_of("ps/gpu"), refused("ps/gpu", "'gpu' is no device"));
  EXPECT_EQ(refusal_of("ps/cuda:x"), refused("ps/cuda:x", "'cuda:x' is no device"));
  for (const std::string rank : {"", "x", "-1", "1x", " 1", "4294967296"})
    EXPECT_EQ(refusal_of("rank:" + rank), refused("rank:" + rank, "'" + rank + "' is no rank"));
}

TEST(RemoteDevice, IsCheckedWhereItShallBe) {
  // Goal: only devices that hold values. Method: the CPU, and three that this process has not.
  EXPECT_EQ(device_meant(c10::Device(c10::kCPU), {}, "ps"), c10::Device(c10::kCPU));
  EXPECT_EQ(device_meant(c10::Device(c10::kCPU, 0), {}, "ps").index(), 0);
  for (const std::string device : {"cpu:1", "meta", "vulkan"}) {
    try {
      static_cast<void>(device_meant(c10::Device(device), {}, "ps"));
      ADD_FAILURE() << device << " was taken";
    } catch (const RpcError& thrown) {
      EXPECT_EQ(thrown.kind(), ErrorKind::bad_arguments);
      EXPECT_EQ(thrown.error().worker, "ps");
      EXPECT_NE(thrown.error().text.find("worker 'ps' has no device '" + device + "'"),
                std::string::npos)
          << thrown.error().text;
    }
  }
}

TEST(RemoteDevice, ADeviceIsAValueAndOtherTextIsNone) {
  // Goal: bytes never crash. Method: a device there and back, and a text that is none.
  Payload payload;
  ValueWriter writer(payload);
  Value<c10::Device>::write(writer, c10::Device(c10::kCUDA, 3));
  Value<std::string>::write(writer, "nonsense");
  ValueReader reader(payload);
  EXPECT_EQ(Value<c10::Device>::read(reader), c10::Device(c10::kCUDA, 3));
  EXPECT_THROW(static_cast<void>(Value<c10::Device>::read(reader)), BadValue);
}

}  // namespace
}  // namespace rehearsal
