#include "core/autograd/ended_passes.h"

#include <gtest/gtest.h>

namespace rehearsal {
namespace {

PassId pass(uint64_t epoch, uint64_t starter = 7) {
  return {.context = {}, .epoch = epoch, .starter_incarnation = {starter}};
}

TEST(EndedPasses, AreThoseOfOneStarterThatWereInserted) {
  EndedPasses ended;
  EXPECT_FALSE(ended.contains(pass(1)));
  ended.insert(pass(2));
  EXPECT_TRUE(ended.contains(pass(2)));
  EXPECT_FALSE(ended.contains(pass(1)));
  EXPECT_FALSE(ended.contains(pass(3)));
  EXPECT_FALSE(ended.contains(pass(2, 8)));
}

TEST(EndedPasses, OfWhichOthersThisWorkerHadNoPartInEndSomewhere) {
  // Goal: a context that lasts takes no more and more memory. Method: every second one of many; the
  // oldest ones between them count as ended then, and no later one does.
  EndedPasses ended;
  constexpr uint64_t kLast = 2 * (EndedPasses::kStretchesMax + 10);
  for (uint64_t epoch = 2; epoch <= kLast; epoch += 2) ended.insert(pass(epoch));
  for (uint64_t epoch = 2; epoch <= kLast; epoch += 2) EXPECT_TRUE(ended.contains(pass(epoch)));
  for (uint64_t epoch = 1; epoch <= 19; epoch += 2) EXPECT_TRUE(ended.contains(pass(epoch)));
  for (uint64_t epoch = 21; epoch <= kLast + 1; epoch += 2)
    EXPECT_FALSE(ended.contains(pass(epoch))) << epoch;
}

}  // namespace
}  // namespace rehearsal
