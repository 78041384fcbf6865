#include "core/base/unique_function.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace rehearsal {
namespace {

// Counts the living, and refuses to be copied.
template <size_t bytes>
struct Counted {
  explicit Counted(int& count) : living(&count) { ++*living; }
  Counted(Counted&& other) noexcept : living(other.living) { ++*living; }
  Counted(const Counted&) = delete;
  ~Counted() { --*living; }
  int* living;
  std::array<char, bytes> ballast{};
};

static_assert(!std::is_copy_constructible_v<Task>);
static_assert(std::is_nothrow_move_constructible_v<Task>);
static_assert(std::is_constructible_v<UniqueFunction<int()>, int (*)()>);
static_assert(!std::is_constructible_v<UniqueFunction<int(int)>, int (*)(std::string)>);

template <size_t bytes>
void expect_owned_once() {
  int living = 0;
  {
    Task task([counted = Counted<bytes>(living)] { (void)counted; });
    EXPECT_EQ(living, 1);
    Task moved(std::move(task));
    EXPECT_EQ(living, 1);
    EXPECT_FALSE(task);
    EXPECT_TRUE(moved);
    task = std::move(moved);
    EXPECT_EQ(living, 1);
    task();
    EXPECT_EQ(living, 1);
    Task& same = task;
    task = std::move(same);
    EXPECT_EQ(living, 1);
    task = nullptr;
    EXPECT_EQ(living, 0);
    EXPECT_FALSE(task);
  }
  EXPECT_EQ(living, 0);
}

TEST(UniqueFunction, OwnsASmallClosureExactlyOnce) { expect_owned_once<8>(); }
TEST(UniqueFunction, OwnsALargeClosureExactlyOnce) { expect_owned_once<400>(); }

TEST(UniqueFunction, AssignmentDestroysWhatWasThere) {
  int first = 0;
  int second = 0;
  Task task([counted = Counted<8>(first)] { (void)counted; });
  task = Task([counted = Counted<400>(second)] { (void)counted; });
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

TEST(UniqueFunction, PassesArgumentsAndResults) {
  // Move-only arguments, references and results go through unchanged.
  UniqueFunction<std::unique_ptr<int>(std::unique_ptr<int>, int&)> add(
      [](std::unique_ptr<int> given, int& by) {
        *given += by;
        ++by;
        return given;
      });
  int by = 3;
  EXPECT_EQ(*add(std::make_unique<int>(4), by), 7);
  EXPECT_EQ(by, 4);
  const UniqueFunction<void()> ignores_result([] {});
  EXPECT_TRUE(ignores_result);
}

TEST(UniqueFunction, KeepsItsStateBetweenCalls) {
  UniqueFunction<int()> next([count = 0]() mutable { return ++count; });
  EXPECT_EQ(next(), 1);
  EXPECT_EQ(next(), 2);
  UniqueFunction<int()> moved = std::move(next);
  EXPECT_EQ(moved(), 3);
}

TEST(UniqueFunction, NamesTheTypeOfItsClosure) {
  // Goal: equal for two of one type, small or large, and only for these.
  const auto small = [](int number) { return UniqueFunction<int()>([number] { return number; }); };
  const auto large = [](char letter) {
    return UniqueFunction<int()>([text = std::array<char, 100>{letter}] { return text[0]; });
  };
  EXPECT_EQ(small(1).type(), small(2).type());
  EXPECT_EQ(large('a').type(), large('b').type());
  EXPECT_NE(small(1).type(), large('a').type());
  EXPECT_EQ(UniqueFunction<int()>().type(), nullptr);
}

TEST(UniqueFunction, SurvivesAGrowingVector) {
  std::vector<UniqueFunction<size_t()>> functions;
  for (size_t i = 0; i < 200; ++i)
    functions.emplace_back([text = std::string(i, 'x')] { return text.size(); });
  for (size_t i = 0; i < functions.size(); ++i) EXPECT_EQ(functions[i](), i);
}

TEST(UniqueFunctionDeathTest, CallingAnEmptyOneIsABug) {
  Task empty;
  EXPECT_DEATH(empty(), "check failed");
}

TEST(UniqueFunction, TagsTellClosuresOfOneTypeApart) {
  // Goal: a closure's own tag, wherever it is kept; zero without. Method: a small and a large one.
  const auto small = [](uint64_t tag) { return Task(Tagged(tag, [] {})); };
  const auto large = [](uint64_t tag) {
    return Task(Tagged(tag, [ballast = std::array<char, 100>{}] { (void)ballast; }));
  };
  EXPECT_EQ(small(3).tag(), 3u);
  EXPECT_EQ(large(4).tag(), 4u);
  EXPECT_EQ(small(3).type(), small(5).type());
  EXPECT_EQ(Task([] {}).tag(), 0u);
  EXPECT_EQ(Task().tag(), 0u);
  Task moved = small(6);
  EXPECT_EQ(Task(std::move(moved)).tag(), 6u);
}

}  // namespace
}  // namespace rehearsal
