// Each execution draws from its own stream, whatever else runs in the process.
#include "core/fibers/default_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/fibers/fiber.h"
#include "tests/core/fibers/fiber_fixture.h"

namespace rehearsal::fibers {
namespace {

// The execution that call number `ordinal` of a main starts.
std::unique_ptr<Execution> execution(uint64_t ordinal, uint64_t seed = 1) {
  const CausalId call{.incarnation = {}, .path = {}, .ordinal = ordinal};
  return std::make_unique<Execution>(call, "test", Seed{seed});
}

at::Tensor draw(Execution& execution, const std::function<at::Tensor()>& how) {
  const ScopedExecution scope(&execution);
  return how();
}

at::Tensor uniform() { return at::rand({5}); }

at::Tensor drawn_from(uint64_t seed) {
  return at::rand({5}, at::make_generator<at::CPUGeneratorImpl>(seed));
}

class DefaultGeneratorTest : public FiberFixture {};

TEST_F(DefaultGeneratorTest, LibTorchAsksUs) {
  // The self-test that a program runs at its start.
  EXPECT_TRUE(default_generator_is_ours());
}

TEST_F(DefaultGeneratorTest, StreamIsSeededByTheExecution) {
  // The draws are those of LibTorch's own generator with the execution's seed.
  auto first = execution(1);
  EXPECT_TRUE(draw(*first, uniform).equal(drawn_from(first->generator_seed())));
  EXPECT_FALSE(draw(*first, uniform).equal(drawn_from(first->generator_seed())));
}

TEST_F(DefaultGeneratorTest, GeneratorIsMadeAtTheFirstDraw) {
  // An execution that draws nothing pays nothing.
  auto first = execution(1);
  {
    const ScopedExecution scope(first.get());
    EXPECT_EQ(first->generator, nullptr);
  }
  (void)draw(*first, uniform);
  EXPECT_NE(first->generator, nullptr);
}

TEST_F(DefaultGeneratorTest, DifferentCallsAndDifferentSeedsDrawDifferently) {
  // Compare three executions that differ in one thing each.
  auto base = execution(1, 1);
  auto other_call = execution(2, 1);
  auto other_seed = execution(1, 2);
  const at::Tensor drawn = draw(*base, uniform);
  EXPECT_FALSE(draw(*other_call, uniform).equal(drawn));
  EXPECT_FALSE(draw(*other_seed, uniform).equal(drawn));
}

TEST_F(DefaultGeneratorTest, EverySourceOfRandomNumbersFollows) {
  // Each way to draw gives the same twice from two executions with one identity.
  const std::vector<std::function<at::Tensor()>> ways{
      [] { return at::randn({7}); },
      [] { return at::dropout(at::ones({100}), 0.5, true); },
      [] { return at::multinomial(at::ones({10}), 3); },
      [] { return at::randperm(50); },
      [] { return at::empty({33}).normal_(); },
      [] { return at::empty({33}).uniform_(-1, 1); },
      [] { return at::empty({8}).exponential_(); },
  };
  for (const auto& way : ways) {
    const at::Tensor once = draw(*execution(1), way);
    EXPECT_TRUE(draw(*execution(1), way).equal(once));
    EXPECT_FALSE(draw(*execution(2), way).equal(once));
  }
}

TEST_F(DefaultGeneratorTest, InterleavedFibersDrawWhatTheyDrawAlone) {
  // Two executions as fibers that draw by turns, against the same two one after the other.
  const auto alone = [](uint64_t ordinal) {
    auto own = execution(ordinal);
    std::vector<at::Tensor> drawn;
    for (int i = 0; i < 4; ++i) drawn.push_back(draw(*own, uniform));
    return drawn;
  };
  std::vector<std::unique_ptr<Execution>> executions;
  std::vector<std::vector<at::Tensor>> drawn(2);
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (size_t i = 0; i < 2; ++i) {
    executions.push_back(execution(i));
    fibers.push_back(make([&drawn, i](Fiber& self) {
      for (int turn = 0; turn < 4; ++turn) {
        drawn[i].push_back(uniform());
        self.suspend();
      }
    }));
  }
  while (!fibers[1]->done())
    for (size_t i : {1, 0}) {
      const ScopedExecution scope(executions[i].get());
      fibers[i]->resume();
    }
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<at::Tensor> expected = alone(i);
    ASSERT_EQ(drawn[i].size(), expected.size());
    for (size_t turn = 0; turn < 4; ++turn) EXPECT_TRUE(drawn[i][turn].equal(expected[turn]));
  }
}

TEST_F(DefaultGeneratorTest, SeedingReachesTheRunningExecutionOnly) {
  // The effect of torch::manual_seed inside one execution; another and the process are untouched.
  auto first = execution(1);
  auto second = execution(2);
  const at::Tensor second_expected = drawn_from(second->generator_seed());
  {
    const ScopedExecution scope(first.get());
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_current_seed(5);
  }
  EXPECT_TRUE(draw(*first, uniform).equal(drawn_from(5)));
  EXPECT_TRUE(draw(*second, uniform).equal(second_expected));
}

TEST_F(DefaultGeneratorTest, ScopesNestAndRestore) {
  // The innermost scope counts; null means that none runs.
  auto outer = execution(1);
  auto inner = execution(2);
  EXPECT_EQ(running_execution(), nullptr);
  {
    const ScopedExecution outer_scope(outer.get());
    EXPECT_EQ(running_execution(), outer.get());
    {
      const ScopedExecution inner_scope(inner.get());
      EXPECT_EQ(running_execution(), inner.get());
      const ScopedExecution none(nullptr);
      EXPECT_EQ(running_execution(), nullptr);
    }
    EXPECT_EQ(running_execution(), outer.get());
  }
  EXPECT_EQ(running_execution(), nullptr);
}

TEST_F(DefaultGeneratorTest, WithoutAnExecutionTheProcessHasOneStream) {
  // Seeded, drawn from, and seen by another thread, as LibTorch's own; executions do not touch it.
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_current_seed(9);
  at::Generator expected = at::make_generator<at::CPUGeneratorImpl>(9);
  EXPECT_TRUE(uniform().equal(at::rand({5}, expected)));
  (void)draw(*execution(1), uniform);
  EXPECT_TRUE(default_generator_is_ours());
  std::thread([&] { EXPECT_TRUE(uniform().equal(at::rand({5}, expected))); }).join();
}

TEST_F(DefaultGeneratorTest, ThreadsDrawFromTheirOwnExecutions) {
  // Four threads at once, a thousand draws each, give what one thread gives.
  constexpr size_t kThreads = 4;
  constexpr int kDraws = 1'000;
  const auto run = [](uint64_t ordinal) {
    auto own = execution(ordinal);
    at::Tensor last;
    for (int i = 0; i < kDraws; ++i) last = draw(*own, uniform);
    return last;
  };
  std::vector<at::Tensor> last(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&last, &run, i] { last[i] = run(i); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) EXPECT_TRUE(last[i].equal(run(i)));
}

}  // namespace
}  // namespace rehearsal::fibers
