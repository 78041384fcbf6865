// LibTorch's thread-local state belongs to the stack that set it: each kind of state is set inside
// one fiber, which parks there, and looked at from a second fiber and from the resumer.
#include "core/fibers/thread_state.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/fibers/fiber.h"
#include "tests/core/fibers/fiber_fixture.h"

namespace rehearsal::fibers {
namespace {

struct Mode {
  const char* name;
  // Runs `inside` while the mode is on.
  std::function<void(const std::function<void()>& inside)> with;
  std::function<bool()> is_on;
};

void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

void with_autocast(const std::function<void()>& inside) {
  const at::ScalarType before = at::autocast::get_autocast_dtype(at::kCPU);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  at::autocast::set_autocast_cache_enabled(false);
  at::autocast::increment_nesting();
  inside();
  at::autocast::decrement_nesting();
  at::autocast::set_autocast_cache_enabled(true);
  at::autocast::set_autocast_dtype(at::kCPU, before);
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

int autocast_nesting() {
  const int deeper = at::autocast::increment_nesting();
  at::autocast::decrement_nesting();
  return deeper - 1;
}

// Counts the ways in which autocast is not at its default; all four or none.
bool autocast_is_on() {
  const int signs = int(at::autocast::is_autocast_enabled(at::kCPU)) +
                    int(at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf) +
                    int(!at::autocast::is_autocast_cache_enabled()) + int(autocast_nesting() == 1);
  EXPECT_TRUE(signs == 0 || signs == 4) << signs;
  return signs == 4;
}

void with_autocast_dtype(const std::function<void()>& inside) {
  at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  inside();
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
}

std::unique_ptr<at::ObserverContext> observe_nothing(const at::RecordFunction&) { return nullptr; }

void with_callback(const std::function<void()>& inside) {
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(&observe_nothing));
  inside();
  at::removeCallback(handle);
}

void with_hooks_disabled(const std::function<void()>& inside) {
  at::SavedTensorDefaultHooks::disable("not here");
  inside();
  at::SavedTensorDefaultHooks::enable();
}

void with_functorch(const std::function<void()>& inside) {
  at::functorch::initAndPushDynamicLayer(at::functorch::TransformType::Vmap, c10::SymInt(3),
                                         at::functorch::RandomnessType::Error);
  inside();
  at::functorch::popDynamicLayerAndDeleteMetadata();
}

template <class Guard, auto... kArguments>
void with_guard(const std::function<void()>& inside) {
  Guard guard(kArguments...);
  inside();
}

void with_debug_info(const std::function<void()>& inside) {
  c10::DebugInfoGuard guard(c10::DebugInfoKind::TEST_INFO, std::make_shared<c10::DebugInfoBase>());
  inside();
}

bool debug_info_is_on() {
  return c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::TEST_INFO) != nullptr;
}

std::vector<Mode> all_modes() {
  return {
      {"NoGradGuard", with_guard<at::NoGradGuard>, [] { return !at::GradMode::is_enabled(); }},
      {"InferenceMode", with_guard<c10::InferenceMode, true>, c10::InferenceMode::is_enabled},
      {"AutoDispatchBelowAutograd", with_guard<at::AutoDispatchBelowAutograd>,
       [] { return c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradOther); }},
      {"UncommonKey",
       [](const auto& inside) {
         c10::impl::IncludeDispatchKeyGuard guard(c10::DispatchKey::TESTING_ONLY_GenericMode);
         inside();
       },
       [] {
         return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::TESTING_ONLY_GenericMode);
       }},
      {"Autocast", with_autocast, autocast_is_on},
      {"AutocastDtype", with_autocast_dtype,
       [] { return at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf; }},
      {"RecordFunctionDisabled", with_guard<at::DisableRecordFunctionGuard>,
       [] { return !at::isRecordFunctionEnabled(); }},
      {"RecordFunctionCallback", with_callback, at::hasThreadLocalCallbacks},
      {"SavedTensorHooks", with_hooks_disabled,
       [] { return !at::SavedTensorDefaultHooks::is_enabled(); }},
      {"DebugInfo", with_debug_info, debug_info_is_on},
      {"Functorch", with_functorch,
       [] { return at::functorch::maybeCurrentDynamicLayer().has_value(); }},
  };
}

class ThreadStateTest : public FiberFixture, public ::testing::WithParamInterface<Mode> {
 protected:
  std::unique_ptr<Fiber> parked_in_mode(int suspends = 1) {
    return make([this, suspends](Fiber& self) {
      EXPECT_FALSE(mode_.is_on());
      mode_.with([&] {
        for (int i = 0; i < suspends; ++i) {
          self.suspend();
          EXPECT_TRUE(mode_.is_on());
        }
      });
      EXPECT_FALSE(mode_.is_on());
      self.suspend();
      EXPECT_FALSE(mode_.is_on());
    });
  }

  const Mode mode_ = GetParam();
};

TEST_P(ThreadStateTest, FiberThatParksInsideAModeChangesNobodyAndFindsItAgain) {
  // Resume a fiber into the mode, look at the resumer and at a second fiber, then let it go on.
  auto holder = parked_in_mode();
  auto other = make([&](Fiber& self) {
    EXPECT_FALSE(mode_.is_on());
    self.suspend();
    EXPECT_FALSE(mode_.is_on());
  });
  holder->resume();
  EXPECT_FALSE(mode_.is_on());
  other->resume();
  EXPECT_FALSE(mode_.is_on());
  holder->resume();
  EXPECT_FALSE(mode_.is_on());
  other->resume();
  holder->resume();
  EXPECT_TRUE(holder->done());
}

TEST_P(ThreadStateTest, TwoFibersInsideTheSameModeLeaveItInAnyOrder) {
  // Enter A, B and leave A, B: with guards that restore what they saw, sharing would leave it on.
  auto first = parked_in_mode(2);
  auto second = parked_in_mode(3);
  for (int i = 0; i < 4; ++i) {
    first->resume();
    EXPECT_FALSE(mode_.is_on());
    second->resume();
    EXPECT_FALSE(mode_.is_on());
  }
  second->resume();
  EXPECT_TRUE(first->done());
  EXPECT_TRUE(second->done());
}

TEST_P(ThreadStateTest, FiberStartsAndGoesOnInTheDefaultWhateverItsResumerIsIn) {
  // Both resumes happen inside the mode; the resumer is in it again afterwards.
  auto fiber = make([&](Fiber& self) {
    EXPECT_FALSE(mode_.is_on());
    self.suspend();
    EXPECT_FALSE(mode_.is_on());
  });
  mode_.with([&] {
    fiber->resume();
    EXPECT_TRUE(mode_.is_on());
    fiber->resume();
    EXPECT_TRUE(mode_.is_on());
  });
  EXPECT_FALSE(mode_.is_on());
}

TEST_P(ThreadStateTest, FiberAndResumerMayBothBeInsideTheMode) {
  // A fiber that entered it by itself is resumed from within it, and outlives it.
  auto fiber = parked_in_mode(2);
  fiber->resume();
  mode_.with([&] {
    fiber->resume();
    EXPECT_TRUE(mode_.is_on());
  });
  EXPECT_FALSE(mode_.is_on());
  fiber->resume();
  EXPECT_FALSE(mode_.is_on());
  fiber->resume();
  EXPECT_TRUE(fiber->done());
}

TEST_P(ThreadStateTest, FiberThatEndsInsideAModeLeavesNothingBehind) {
  // An exception may leave a fiber while code without a guard has left a mode on.
  auto fiber = make([&](Fiber&) { mode_.with([&] { throw 1; }); });
  fiber->resume();
  EXPECT_TRUE(fiber->done());
  EXPECT_FALSE(mode_.is_on());
  auto next = make([&](Fiber&) { EXPECT_FALSE(mode_.is_on()); });
  next->resume();
}

TEST_P(ThreadStateTest, GuardSetsTheDefaultAndRestores) {
  // As when a user's thread enters protocol code from within the mode.
  mode_.with([&] {
    {
      DefaultThreadState guard;
      EXPECT_FALSE(mode_.is_on());
    }
    EXPECT_TRUE(mode_.is_on());
  });
  EXPECT_FALSE(mode_.is_on());
}

TEST_P(ThreadStateTest, GuardHoldsOnAThreadThatIsNotTheFirst) {
  // The default is the same on every thread.
  std::thread([&] {
    EXPECT_FALSE(mode_.is_on());
    mode_.with([&] {
      {
        DefaultThreadState guard;
        EXPECT_FALSE(mode_.is_on());
      }
      EXPECT_TRUE(mode_.is_on());
    });
    EXPECT_FALSE(mode_.is_on());
  }).join();
}

INSTANTIATE_TEST_SUITE_P(Modes, ThreadStateTest, ::testing::ValuesIn(all_modes()),
                         [](const auto& info) { return std::string(info.param.name); });

class ManyModesTest : public FiberFixture {};

TEST_F(ManyModesTest, FibersInDifferentModesAreIndependent) {
  // One fiber in each mode, then a round in which each sees its own mode and no other.
  const std::vector<Mode> modes = all_modes();
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (size_t own = 0; own < modes.size(); ++own)
    fibers.push_back(make([&modes, own](Fiber& self) {
      modes[own].with([&] {
        self.suspend();
        EXPECT_TRUE(modes[own].is_on()) << modes[own].name;
      });
      self.suspend();
      for (const Mode& mode : modes) EXPECT_FALSE(mode.is_on()) << mode.name;
    }));
  for (int round = 0; round < 3; ++round)
    for (auto& fiber : fibers) {
      fiber->resume();
      for (const Mode& mode : modes) EXPECT_FALSE(mode.is_on()) << mode.name;
    }
}

TEST_F(ManyModesTest, ModesNestInOneFiber) {
  // All modes at once, parked at the bottom, are all found again.
  const std::vector<Mode> modes = all_modes();
  auto fiber = make([&](Fiber& self) {
    std::function<void(size_t)> enter = [&](size_t next) {
      if (next == modes.size()) {
        self.suspend();
        for (const Mode& mode : modes) EXPECT_TRUE(mode.is_on()) << mode.name;
        return;
      }
      if (std::string(modes[next].name) == "AutocastDtype") return enter(next + 1);
      modes[next].with([&] { enter(next + 1); });
    };
    enter(0);
  });
  fiber->resume();
  for (const Mode& mode : modes) EXPECT_FALSE(mode.is_on()) << mode.name;
  fiber->resume();
  for (const Mode& mode : modes) EXPECT_FALSE(mode.is_on()) << mode.name;
}

}  // namespace
}  // namespace rehearsal::fibers
