#include "core/fibers/stack_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "core/fibers/sanitizer.h"

namespace rehearsal::fibers {
namespace {

Stack take(StackPool& pool) { return std::move(pool.take()).value(); }

TEST(StackPool, GivesTheStackThatCameBackLast) {
  // A reused stack should be warm: return two, take two, and compare the memory.
  StackPool pool;
  std::optional<Stack> first = take(pool);
  std::optional<Stack> second = take(pool);
  const std::byte* first_top = first->top();
  const std::byte* second_top = second->top();
  first.reset();
  second.reset();
  EXPECT_EQ(pool.idle(), 2u);
  const Stack third = take(pool);
  const Stack fourth = take(pool);
  EXPECT_EQ(third.top(), second_top);
  EXPECT_EQ(fourth.top(), first_top);
  EXPECT_EQ(pool.idle(), 0u);
}

TEST(StackPool, CountsWhatIsInUse) {
  // Take and return: the count follows, and a moved stack counts once.
  StackPool pool;
  EXPECT_EQ(pool.live(), 0u);
  {
    Stack one = take(pool);
    Stack two = take(pool);
    EXPECT_EQ(pool.live(), 2u);
    Stack moved = std::move(one);
    EXPECT_EQ(pool.live(), 2u);
    two = std::move(moved);
    EXPECT_EQ(pool.live(), 1u);
  }
  EXPECT_EQ(pool.live(), 0u);
  EXPECT_EQ(pool.idle(), 2u);
}

TEST(StackPool, RefusesOneMoreThanItsLimitAndSaysWhatToDo) {
  // With a limit of two, the third is an error that names the limit; it is given after a return.
  StackPool pool({.live_max = 2});
  std::optional<Stack> first = take(pool);
  const Stack second = take(pool);
  const Result<Stack> refused = pool.take();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::overloaded);
  EXPECT_NE(refused.error().text.find("2 are live"), std::string::npos) << refused.error().text;
  EXPECT_NE(refused.error().text.find("vm.max_map_count"), std::string::npos);
  EXPECT_EQ(pool.live(), 2u);
  first.reset();
  EXPECT_TRUE(pool.take().ok());
}

TEST(StackPool, KeepsNoMoreFreeStacksThanAllowed) {
  // Three come back to a pool that keeps one.
  StackPool pool({.idle_max = 1});
  {
    std::vector<Stack> stacks;
    for (int i = 0; i < 3; ++i) stacks.push_back(take(pool));
  }
  EXPECT_EQ(pool.idle(), 1u);
  EXPECT_EQ(pool.live(), 0u);
}

TEST(StackPool, StackIsWritableFromTopToBottomAgainAfterReuse) {
  // Fill all of it twice; under AddressSanitizer this also shows that reuse makes it accessible.
  StackPool pool({.stack_bytes = 64 * 1024});
  for (int use = 0; use < 2; ++use) {
    const Stack stack = take(pool);
    ASSERT_EQ(stack.size(), 64u * 1024);
    std::memset(stack.bottom(), 0xab, stack.size());
    EXPECT_TRUE(stack.contains(stack.bottom()));
    EXPECT_TRUE(stack.contains(stack.top() - 1));
    EXPECT_FALSE(stack.contains(stack.top()));
    EXPECT_FALSE(stack.contains(stack.bottom() - 1));
  }
}

TEST(StackPool, SizeIsRoundedUpToPages) {
  // An odd size gives whole pages, not fewer bytes than asked for.
  StackPool pool({.stack_bytes = 10'000});
  EXPECT_EQ(take(pool).size(), 12u * 1024);
}

using StackPoolDeathTest = ::testing::Test;

TEST(StackPoolDeathTest, TouchingThePageBelowAStackFaults) {
  // Write one byte under the bottom, as an overflow does.
  StackPool pool;
  const Stack stack = take(pool);
  volatile std::byte* below = stack.bottom() - 1;
  EXPECT_DEATH(*below = std::byte{1}, "");
}

TEST(StackPoolDeathTest, DestroyingThePoolBeforeItsStacksIsABug) {
  // End the pool while a stack is out.
  EXPECT_DEATH(
      {
        std::optional<Stack> stack;
        StackPool pool;
        stack = take(pool);
      },
      "live_ == 0");
}

// Takes stacks under a limit of address space, and leaves with 0 if the refusal was as promised.
[[noreturn]] void exhaust_address_space() {
  std::vector<Stack> stacks;
  stacks.reserve(1'000);
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * 4096 + (64u << 20);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
  StackPool pool;
  for (int i = 0; i < 1'000; ++i) {
    Result<Stack> stack = pool.take();
    if (!stack.ok()) {
      const bool clear = stack.error().kind == ErrorKind::overloaded &&
                         stack.error().text.find("refuses memory") != std::string::npos;
      std::_Exit(clear && pool.live() == stacks.size() && !stacks.empty() ? 0 : 3);
    }
    stacks.push_back(std::move(stack).value());
  }
  std::_Exit(4);
}

TEST(StackPoolDeathTest, SaysSoWhenTheSystemGivesNoMoreMemory) {
  // A child process with 64 MiB of address space left asks for a thousand stacks of 1 MiB.
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  GTEST_SKIP() << "AddressSanitizer needs the address space for itself";
#endif
  EXPECT_EXIT(exhaust_address_space(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rehearsal::fibers
