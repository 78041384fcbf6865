#include "core/base/mutants.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace rehearsal {
namespace {

// Every mutant there is, whether it is compiled in or not.
constexpr size_t kCount = static_cast<size_t>(Mutant::replacement_not_awaited) + 1;

size_t count(const Mutants& mutants) {
  size_t on = 0;
  for (size_t i = 0; i < kCount; ++i) on += mutants.on(static_cast<Mutant>(i)) ? 1 : 0;
  return on;
}

TEST(Mutants, AllAreOffUnlessNamed) { EXPECT_EQ(count(Mutants::from_names({})), 0u); }

TEST(Mutants, EachNameTurnsOnOneRule) {
  // Goal: the table names each mutant once. Method: turn on one after the other, then all.
  if (!kHasMutants) GTEST_SKIP() << "this build has no mutants";
  const std::vector<std::string> names = mutant_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), kCount);
  for (const MutantRow& row : mutant_table()) {
    const Mutants mutants = Mutants::from_names({std::string(row.name)});
    EXPECT_EQ(count(mutants), 1u) << row.name;
    EXPECT_TRUE(mutants.on(row.mutant)) << row.name;
    EXPECT_FALSE(row.wrong.empty()) << row.name;
  }
  EXPECT_EQ(count(Mutants::from_names(names)), kCount);
  EXPECT_TRUE(Mutants::from_names({"no_fencing"}).on(Mutant::no_fencing));
}

TEST(Mutants, AnUnknownNameIsRefused) {
  EXPECT_THROW((void)Mutants::from_names({"no_fences"}), std::invalid_argument);
}

TEST(Mutants, AProductHasNone) {
  // Goal: no switch can be turned on. Method: turn one on without asking for it by name.
  if (kHasMutants) GTEST_SKIP() << "this build has mutants";
  static_assert(kHasMutants || !Mutants{}.on(Mutant::no_fencing));
  Mutants mutants;
  mutants.turn_on(Mutant::no_fencing);
  EXPECT_FALSE(mutants.on(Mutant::no_fencing));
  EXPECT_TRUE(mutant_names().empty());
  EXPECT_THROW((void)Mutants::from_names({"no_fencing"}), std::invalid_argument);
}

}  // namespace
}  // namespace rehearsal
