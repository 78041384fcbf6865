// The first seeds of every scenario, event by event: a change that is not meant to change what they
// do, such as other fibers below the same protocol, is seen to change none of it.
#include "tests/pins.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/all_scenarios.h"
#include "tests/scenarios/simulated.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal {
namespace {

// Without what this process was told of pins.
class PinsFile : public testing::Test {
 protected:
  PinsFile() { unsetenv(kRenew); }
  ~PinsFile() override {
    if (was_) setenv(kRenew, was_->c_str(), 1);
    if (!was_) unsetenv(kRenew);
  }

  static constexpr const char* kRenew = "REHEARSAL_REPIN";
  const TemporaryFolder folder_;
  const Pins pins_{folder_.path()};

 private:
  static std::optional<std::string> said() {
    const char* value = std::getenv(kRenew);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  const std::optional<std::string> was_ = said();
};

TEST_F(PinsFile, IsWhatAResultMustBe) {
  // Goal: another value, and one that is not pinned, is told with the command that renews it.
  // Method: a file of one pin.
  std::ofstream(folder_.file("pins.json")) << R"({"orders": 12})";
  EXPECT_TRUE(pins_.hold("orders", 12));
  const testing::AssertionResult other = pins_.hold("orders", 13);
  EXPECT_FALSE(other);
  EXPECT_EQ(std::string(other.message()),
            "orders: 13, but " + folder_.file("pins.json") +
                " says 12; if this change was meant to change that: ./dev repin");
  const testing::AssertionResult none = pins_.hold("pairs", 12);
  EXPECT_FALSE(none);
  EXPECT_NE(std::string(none.message()).find(" says nothing;"), std::string::npos);
}

TEST_F(PinsFile, IsRenewedLineByLine) {
  // Goal: a renewed file has a line for each pin, so that a difference is read at a glance. Method:
  // renew two, one of them twice, where there was no file.
  setenv(kRenew, "1", 1);
  EXPECT_TRUE(pins_.hold("pairs", 7));
  EXPECT_TRUE(pins_.hold("orders", "many"));
  EXPECT_TRUE(pins_.hold("pairs", 8));
  EXPECT_EQ(read_whole_file(folder_.file("pins.json")),
            "{\n \"orders\": \"many\",\n \"pairs\": 8\n}\n");
}

TEST(PinnedKernels, ASquareRootIsTheNearestNumber) {
  // Goal: the pins hang on no processor's approximation. Method: numbers of many sizes, in each of
  // the three forms in which LibTorch takes roots.
  const at::Tensor of = at::arange(1, 5'000, at::kFloat).pow(3).div_(7e9);
  at::Tensor into = at::empty({0}, at::kFloat);
  at::sqrt_out(into, of);
  const at::Tensor root = of.sqrt();
  const at::Tensor in_place = of.clone().sqrt_();
  for (int64_t i = 0; i < of.numel(); ++i) {
    const float nearest = std::sqrt(of[i].item<float>());
    ASSERT_EQ(root[i].item<float>(), nearest);
    ASSERT_EQ(in_place[i].item<float>(), nearest);
    ASSERT_EQ(into[i].item<float>(), nearest);
  }
}

struct Kind {
  const char* name;
  ScenarioFaults faults;
};

const std::vector<Kind>& kinds() {
  using enum sim::FaultLevel;
  static const std::vector<Kind> all = {
      {"none", {.faults = none}},
      {"mild", {.faults = mild}},
      {"hostile", {.faults = hostile}},
      {"hostile, a crash", {.faults = hostile, .crashes = 1, .restarts = sim::Restart::drawn}}};
  return all;
}

class FirstSeeds : public testing::TestWithParam<Scenario> {};

TEST_P(FirstSeeds, DoWhatTheyDid) {
  // Goal: a seed's run is the one that it was, not only one that holds. Method: fingerprints of
  // all events, at every level of faults.
  const Pins pins("tests/scenarios/pins");
  const command_line::Backends backends = command_line::shipped_backends();
  for (uint64_t seed = 1; seed <= 3; ++seed)
    for (const Kind& kind : kinds()) {
      const auto run = simulated_by(backends, GetParam(), seed, kind.faults, {});
      EXPECT_TRUE(run.outcome.ok) << failure_text(run.outcome);
      EXPECT_TRUE(pins.hold(GetParam().name + ", seed " + std::to_string(seed) + ", " + kind.name,
                            run.outcome.fingerprint.value_or("")));
    }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, FirstSeeds, testing::ValuesIn(all_scenarios()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rehearsal
