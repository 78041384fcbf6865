#include "sim/places/source_places.h"

#include <gtest/gtest.h>

#include <string>

namespace rehearsal::sim {
namespace {

constexpr int kLine = __LINE__ + 2;
[[gnu::noinline]] std::string where(SourcePlaces& places) {
  std::string stack = places.calling_stack();
  return stack + "\n";
}

struct Model {
  [[gnu::noinline]] std::string push(SourcePlaces& places) { return where(places) + "pushed"; }
};

TEST(SourcePlaces, AreFunctionsWithFileAndLineInnermostFirst) {
  // Goal: what a person looks for on a stack. Method: a function, in a method, in this test;
  // nothing of this library nor of GoogleTest's.
  SourcePlaces places;
  const std::string stack = Model().push(places);
  const std::string file = "source_places_test.cc:";
  EXPECT_TRUE(stack.starts_with("where /")) << stack;
  EXPECT_NE(stack.find(file + std::to_string(kLine) + "\n"), std::string::npos) << stack;
  EXPECT_NE(stack.find("\nModel::push /"), std::string::npos) << stack;
  EXPECT_EQ(stack.find("SourcePlaces::"), std::string::npos) << stack;
  EXPECT_EQ(stack.find("testing::"), std::string::npos) << stack;
  EXPECT_EQ(stack.find("\nmain"), std::string::npos) << stack;  // GoogleTest's: it has no lines
}

TEST(SourcePlaces, TheFirstWithALineIsTheShortPlace) {
  EXPECT_EQ(short_place("push /project/training.cc:27\ntrainer /project/training.cc:62"),
            "training.cc:27");
  EXPECT_EQ(short_place("push"), "");
  EXPECT_EQ(short_place(""), "");
}

}  // namespace
}  // namespace rehearsal::sim
