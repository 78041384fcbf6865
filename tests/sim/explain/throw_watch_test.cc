#include "sim/explain/throw_watch.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace rehearsal::sim {
namespace {

class Listener final : public ThrowListener {
 public:
  void on_throw(const std::type_info&, const std::exception* thrown, const void*) override {
    heard.push_back(thrown == nullptr ? "no exception" : thrown->what());
  }
  std::vector<std::string> heard;
};

template <class F>
void swallow(F body) {
  try {
    body();
  } catch (...) {
  }
}

TEST(ThrowWatch, HearsOfThrowsOfTheProgramOfTheCppLibraryAndOfLibTorch) {
  // Goal: whoever throws, by way of whatever library. Method: one of each.
  Listener listener;
  {
    const ThrowWatch watch(listener);
    swallow([] { throw std::runtime_error("mine"); });
    swallow([] { static_cast<void>(std::stoi("x")); });
    swallow([] { static_cast<void>(at::ones({2}).view({3})); });
    swallow([] { throw 3; });
  }
  ASSERT_EQ(listener.heard.size(), 4u);
  EXPECT_EQ(listener.heard[0], "mine");
  EXPECT_EQ(listener.heard[1], "stoi");
  EXPECT_NE(listener.heard[2].find("shape '[3]' is invalid"), std::string::npos);
  EXPECT_EQ(listener.heard[3], "no exception");
}

TEST(ThrowWatch, FindsTheExceptionInWhatDerivesFromSeveral) {
  struct Other {
    virtual ~Other() = default;
    int number = 7;
  };
  struct Both : Other, std::logic_error {
    Both() : std::logic_error("both") {}
  };
  Listener listener;
  const ThrowWatch watch(listener);
  swallow([] { throw Both(); });
  EXPECT_EQ(listener.heard, std::vector<std::string>{"both"});
}

TEST(ThrowWatch, AllListenAndNobodyAfterTheEnd) {
  Listener outer;
  Listener inner;
  {
    const ThrowWatch watch(outer);
    swallow([] { throw std::runtime_error("1"); });
    {
      const ThrowWatch closer(inner);
      swallow([] { throw std::runtime_error("2"); });
    }
    swallow([] { throw std::runtime_error("3"); });
  }
  swallow([] { throw std::runtime_error("4"); });
  EXPECT_EQ(outer.heard, (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(inner.heard, (std::vector<std::string>{"2"}));
}

TEST(ThrowWatch, WhatIsThrownAgainWasToldBefore) {
  Listener listener;
  const ThrowWatch watch(listener);
  swallow([] {
    try {
      throw std::runtime_error("once");
    } catch (...) {
      throw;
    }
  });
  EXPECT_EQ(listener.heard, std::vector<std::string>{"once"});
}

}  // namespace
}  // namespace rehearsal::sim
