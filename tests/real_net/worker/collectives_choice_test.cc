// Goal: a choice that cannot be followed is refused in one line. Method: every way to choose.
#include "real_net/worker/collectives_choice.h"

#include <gtest/gtest.h>

#include "real_net/gloo/gloo_carriers.h"

namespace rehearsal::real {
namespace {

std::string chosen(const std::string& text, const std::string& variable,
                   const BesideCollectives& beside = {}) {
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    if (name != "REHEARSAL_COLLECTIVES" || variable.empty()) return std::nullopt;
    return variable;
  };
  const Result<Collectives> made = choose_collectives(text, environment, beside);
  if (!made.ok()) return made.error().text;
  return std::string(name_of(made.value()));
}

TEST(CollectivesChoice, TheOptionWinsOverTheVariable) {
  EXPECT_EQ(chosen("", ""), "own");
  EXPECT_EQ(chosen("own", "gloo"), "own");
  EXPECT_EQ(chosen("own", "gloo", {.is_recorded = true, .proves = true}), "own");
  if (!has_gloo()) GTEST_SKIP() << "this LibTorch has no gloo";
  EXPECT_EQ(chosen("gloo", ""), "gloo");
  EXPECT_EQ(chosen("", "gloo"), "gloo");
  EXPECT_EQ(chosen("gloo", "own"), "gloo");
}

TEST(CollectivesChoice, WhatCannotBeFollowedIsRefused) {
  EXPECT_EQ(chosen("mpi", ""),
            "--collectives mpi: type own (the calls of the workers carry all) or gloo (it carries "
            "the large tensors of process groups)");
  EXPECT_EQ(chosen("", "Gloo"),
            "REHEARSAL_COLLECTIVES=Gloo: type own (the calls of the workers carry all) or gloo (it "
            "carries the large tensors of process groups)");
  if (has_gloo())
    EXPECT_EQ(chosen("gloo", "", {.proves = true}),
              "--collectives gloo and a secret or certificates (REHEARSAL_AUTH or --auth): gloo's "
              "connections prove nothing and hide nothing; leave one of them out");
  EXPECT_EQ(chosen("", "gloo", {.is_recorded = true}),
            has_gloo()
                ? "REHEARSAL_COLLECTIVES=gloo and --record: a record cannot hold what gloo "
                  "brings; leave one of them out"
                : "REHEARSAL_COLLECTIVES=gloo: the LibTorch that this program was built with "
                  "has no gloo; leave it out");
}

}  // namespace
}  // namespace rehearsal::real
