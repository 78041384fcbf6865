#include <optional>
#include <vector>

#include "tests/sim/device/devices.h"

// Goal: memory that is freed while a stream may still use it is found; the host cannot touch it; it
// is counted and comes to an end.
namespace rehearsal::sim {
namespace {

using torch::Tensor;

constexpr uint64_t kSeeds = 40;

enum class Care { none, record_stream, wait };

// A tensor is used on another stream, freed, and its memory is written anew.
float use_and_free(Care care) {
  std::optional<Tensor> x = torch::ones({3}, sim_device());
  const c10::Stream side = SimulatedDevices::new_stream(0);
  wait_for(side, current_stream());
  Tensor twice;
  {
    const c10::StreamGuard on_side(side);
    twice = *x * 2;
  }
  if (care == Care::record_stream) x->record_stream(side);
  if (care == Care::wait) wait_for(current_stream(), side);
  const void* memory = x->const_data_ptr();
  x.reset();
  const Tensor other = torch::zeros({3}, sim_device());
  if (care != Care::record_stream) EXPECT_EQ(other.const_data_ptr(), memory);
  side.synchronize();
  return twice.sum().item<float>();
}

TEST(Memory, FreedTooEarlyIsFoundInEveryRun) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimulatedDevices devices({.seed = seed});
    wrong += use_and_free(Care::none) == 6 ? 0 : 1;
    ASSERT_EQ(devices.problems().size(), 1U);
    EXPECT_EQ(
        without_lines(devices.problems()[0]),
        "freed too early: aten::mul (operation 4, memory_test.cc:N) on stream 33 of sim:0 reads "
        "memory whose tensor was freed, and which is given out again on stream 0 of sim:0 "
        "(operation 5, memory_test.cc:N), while nothing says that this has been done. Missing: "
        "record_stream of that tensor for stream 33 of sim:0 before it is freed, or an event that "
        "stream 33 of sim:0 records after operation 4 and stream 0 of sim:0 waits for");
  }
  EXPECT_GT(wrong, 0);
}

TEST(Memory, ARecordedStreamOrAWaitKeepsIt) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const Care care : {Care::record_stream, Care::wait}) {
      SimulatedDevices devices({.seed = seed});
      EXPECT_EQ(use_and_free(care), 6);
      EXPECT_EQ(problems_of(devices), "");
    }
}

TEST(Memory, IsHadAgainOnceTheRecordedStreamIsDone) {
  SimulatedDevices devices;
  std::optional<Tensor> x = torch::ones({3}, sim_device());
  const void* memory = x->const_data_ptr();
  const c10::Stream side = SimulatedDevices::new_stream(0);
  x->record_stream(side);
  x.reset();
  devices.synchronize();
  EXPECT_EQ(torch::zeros({3}, sim_device()).const_data_ptr(), memory);
  EXPECT_EQ(problems_of(devices), "");
}

TEST(Memory, IsHadAgainByASmallerTensorOnceTheRecordedStreamIsDone) {
  int had_again = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimulatedDevices devices({.seed = seed});
    std::optional<Tensor> x = torch::ones({100}, sim_device());
    const void* memory = x->const_data_ptr();
    const c10::Stream side = SimulatedDevices::new_stream(0);
    wait_for(side, current_stream());
    Tensor twice;
    {
      const c10::StreamGuard on_side(side);
      twice = *x * 2;
    }
    x->record_stream(side);
    x.reset();
    // The host does not wait: that the side stream is done the memory alone finds out.
    std::vector<Tensor> others;
    while (others.size() < 200 && (others.empty() || others.back().const_data_ptr() != memory))
      others.push_back(torch::zeros({100 - 1}, sim_device()));
    if (others.back().const_data_ptr() == memory) {
      ++had_again;
      others.back().add_(1);
    }
    EXPECT_EQ(problems_of(devices), "");
  }
  EXPECT_GT(had_again, 0);
}

TEST(Memory, IsNaNUntilItIsWritten) {
  SimulatedDevices devices;
  EXPECT_TRUE(torch::empty({3}, sim_device()).isnan().all().item<bool>());
}

TEST(Memory, IsCountedAndComesToAnEnd) {
  SimulatedDevices devices({.memory = 1 << 20});
  {
    const Tensor x = torch::ones({1000}, sim_device());
    EXPECT_EQ(devices.bytes_in_use(0), 4096U);
    std::string text;
    try {
      (void)torch::empty({1 << 20}, sim_device());
    } catch (const c10::OutOfMemoryError& error) {
      text = error.what_without_backtrace();
    }
    EXPECT_EQ(text,
              "sim:0 has no 4194304 bytes left: 4096 of 1048576 are in use, the rest is kept for "
              "other sizes and streams");
    EXPECT_EQ((x + 1).sum().item<float>(), 2000);
  }
  EXPECT_EQ(devices.bytes_in_use(0), 0U);
}

TEST(MemoryDeathTest, TheHostCannotTouchIt) {
  SimulatedDevices devices;
  const Tensor x = torch::ones({3}, sim_device());
  devices.synchronize();
  EXPECT_DEATH(std::cerr << *static_cast<const volatile float*>(x.const_data_ptr()), "");
}

TEST(Memory, TensorsMayOutliveTheirDevices) {
  Tensor x;
  {
    SimulatedDevices devices;
    x = torch::ones({3}, sim_device());
  }
  SimulatedDevices others;
  EXPECT_THROW((void)(x + 1), c10::Error);
  x.reset();
}

}  // namespace
}  // namespace rehearsal::sim
