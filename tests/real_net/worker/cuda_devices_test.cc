// Goal: a process that has no GPU is told so in one line, and goes on. Method: the call, on
// whatever machine this is, twice.
#include "real_net/cuda_devices.h"

#include <gtest/gtest.h>

namespace rehearsal::real {
namespace {

TEST(CudaDevices, AreThereOrItIsToldInOneLine) {
  const Result<DevicesHere> first = cuda_devices();
  const Result<DevicesHere> second = cuda_devices();
  ASSERT_EQ(first.ok(), second.ok());
  if (first.ok()) {
    EXPECT_EQ(first.value().type, c10::DeviceType::CUDA);
    EXPECT_GT(first.value().count, 0);
    return;
  }
  EXPECT_EQ(first.error().kind, ErrorKind::bad_arguments);
  EXPECT_EQ(first.error().text, second.error().text);
  EXPECT_EQ(first.error().text.find('\n'), std::string::npos) << first.error().text;
  const bool says_why = first.error().text.starts_with("LibTorch's part for CUDA cannot be ") ||
                        first.error().text.starts_with("this process has no CUDA device: ") ||
                        first.error().text.starts_with("CUDA cannot be used: ");
  EXPECT_TRUE(says_why) << first.error().text;
}

}  // namespace
}  // namespace rehearsal::real
