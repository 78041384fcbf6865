#include "sim/hunt/commit_seed.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rehearsal::sim {
namespace {

TEST(SeedOfCommit, IsTheNumberOfItsFirstSevenDigits) {
  // Goal: the same seed for everyone. Method: short, long and upper-case forms of one id.
  EXPECT_EQ(seed_of_commit("a03519d").value, 0xa03519du);
  EXPECT_EQ(seed_of_commit("a03519d2f4c6e8b0a1c3d5e7f90817263544aabb").value, 0xa03519du);
  EXPECT_EQ(seed_of_commit("A03519D2").value, 0xa03519du);
  EXPECT_EQ(seed_of_commit("0000000").value, 0u);
}

TEST(SeedOfCommit, WhatIsNoCommitIsRefusedWithALine) {
  // Goal: no silent default. Method: nothing, a branch, too few digits, too many.
  for (const std::string& id : {std::string(), std::string("main"), std::string("a03519"),
                                std::string("a03519g"), std::string(65, 'a')}) {
    try {
      static_cast<void>(seed_of_commit(id));
      FAIL() << id;
    } catch (const std::invalid_argument& wrong) {
      EXPECT_EQ(wrong.what(), "'" + id + "' is no commit: give its id, 7 to 64 hexadecimal digits");
    }
  }
}

}  // namespace
}  // namespace rehearsal::sim
