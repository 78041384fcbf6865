#include "real_net/worker/spin_choice.h"

#include <gtest/gtest.h>

#include "real_net/runtime/real_runtime.h"

namespace rehearsal::real {
namespace {

Environment with_spin(const std::optional<std::string>& value) {
  return
      [value](const std::string& name) { return name == "REHEARSAL_SPIN" ? value : std::nullopt; };
}

TEST(SpinChoice, TheOptionWinsOverTheVariableAndThatOverTheDefault) {
  EXPECT_EQ(choose_spin("", with_spin({})).or_throw(), RuntimeOptions{}.spin_max);
  EXPECT_EQ(choose_spin("", with_spin("0")).or_throw(), Duration::zero());
  EXPECT_EQ(choose_spin("20us", with_spin("0")).or_throw(), std::chrono::microseconds(20));
  EXPECT_EQ(choose_spin("100ms", with_spin({})).or_throw(), std::chrono::milliseconds(100));
}

TEST(SpinChoice, AWrongOneIsToldInOneLine) {
  for (const char* wrong : {"60", "1s", "-1us", "fast", "101ms"}) {
    Result<Duration> chosen = choose_spin(wrong, with_spin({}));
    ASSERT_FALSE(chosen.ok()) << wrong;
    EXPECT_EQ(chosen.error().kind, ErrorKind::bad_arguments);
    EXPECT_EQ(chosen.error().text, "--spin " + std::string(wrong) +
                                       ": type a time of at most 100ms, for example 60us, or 0");
  }
  EXPECT_EQ(choose_spin("", with_spin("x")).error().text,
            "REHEARSAL_SPIN=x: type a time of at most 100ms, for example 60us, or 0");
}

}  // namespace
}  // namespace rehearsal::real
