#include "net_fake/presets.h"

#include <gtest/gtest.h>

namespace rehearsal::net_fake {
namespace {

constexpr uint64_t kLargestDraw = Delay::kDraws - 1;

TEST(Presets, NamesAreReadBack) {
  for (const Preset preset : kPresets) EXPECT_EQ(preset_named(name_of(preset)), preset);
  EXPECT_FALSE(preset_named("lan"));
}

// Goal: each name stands for the delays that its documentation says.
TEST(Presets, DelaysAreTheDocumentedOnes) {
  const auto range = [](Preset preset) {
    const Delay delay = link_of(preset).delay;
    return std::pair(delay.sample(0), delay.sample(kLargestDraw) / 1000 * 1000);
  };
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  EXPECT_EQ(range(Preset::local).first, microseconds(5));
  EXPECT_EQ(range(Preset::local).second, microseconds(19));
  EXPECT_EQ(range(Preset::rack).first, microseconds(50));
  EXPECT_EQ(range(Preset::rack).second, microseconds(199));
  EXPECT_EQ(range(Preset::wan).first, milliseconds(30));
  EXPECT_GT(range(Preset::wan).second, milliseconds(95));
  EXPECT_LE(range(Preset::wan).second, milliseconds(101));
  EXPECT_EQ(range(Preset::hostile).first, microseconds(100));
  EXPECT_GT(range(Preset::hostile).second, milliseconds(99));
}

}  // namespace
}  // namespace rehearsal::net_fake
