#include "core/rpc/mutants.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace rehearsal {
namespace {

// How many switches are on.
int count(const Mutants& mutants) {
  return mutants.no_deduplication + mutants.no_confirmation_gate + mutants.confirm_never_refuses +
         mutants.delete_before_answer + mutants.pins_survive_fencing + mutants.no_fencing +
         mutants.forget_dead_epochs;
}

TEST(Mutants, AllAreOffUnlessNamed) { EXPECT_EQ(count(Mutants::from_names({})), 0); }

TEST(Mutants, EachNameTurnsOnOneRule) {
  const std::vector<std::string> names = mutant_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 7u);
  for (const std::string& name : names) EXPECT_EQ(count(Mutants::from_names({name})), 1) << name;
  EXPECT_EQ(count(Mutants::from_names(names)), 7);
  EXPECT_TRUE(Mutants::from_names({"no_fencing"}).no_fencing);
}

TEST(Mutants, AnUnknownNameIsRefused) {
  EXPECT_THROW((void)Mutants::from_names({"no_fences"}), std::invalid_argument);
}

}  // namespace
}  // namespace rehearsal
