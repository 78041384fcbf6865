#include "sim/hunt/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

namespace rehearsal::sim {
namespace {

// Sets a variable as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

std::string refusal_of(const char* name, const char* value) {
  const Variable variable(name, value);
  try {
    static_cast<void>(read_environment());
  } catch (const std::invalid_argument& wrong) {
    return wrong.what();
  }
  return "";
}

TEST(Environment, SaysNothingUnlessItIsSet) {
  // Goal: defaults; an empty variable is none, as CI systems set what they do not know.
  const Variable empty("REHEARSAL_SEEDS", "");
  const Environment environment = read_environment();
  EXPECT_FALSE(environment.run);
  EXPECT_FALSE(environment.first_seed);
  EXPECT_FALSE(environment.seeds);
  EXPECT_FALSE(environment.seconds);
  EXPECT_EQ(environment.shard_count, 1u);
  EXPECT_EQ(environment.report_folder, "");
}

TEST(Environment, IsRead) {
  // Goal: every variable arrives. Method: all at once.
  const Variable run("REHEARSAL_RUN", "--seed 8 --benign");
  const Variable commit("REHEARSAL_COMMIT", "a03519d");
  const Variable seeds("REHEARSAL_SEEDS", "2000");
  const Variable seconds("REHEARSAL_SECONDS", "60");
  const Variable shard("REHEARSAL_SHARD", "2/3");
  const Variable report("REHEARSAL_REPORT", "found");
  const Environment environment = read_environment();
  EXPECT_EQ(environment.run->seed.value, 8u);
  EXPECT_EQ(environment.first_seed->value, 0xa03519du);
  EXPECT_EQ(environment.seeds, 2000u);
  EXPECT_EQ(environment.seconds, 60u);
  EXPECT_EQ(environment.shard, 2u);
  EXPECT_EQ(environment.shard_count, 3u);
  EXPECT_EQ(environment.report_folder, "found");
}

TEST(Environment, WhatCannotBeUnderstoodIsRefusedWithTheNameOfTheVariable) {
  // Goal: one line, no silent default. Method: a bad value of each.
  EXPECT_EQ(refusal_of("REHEARSAL_RUN", "17"),
            "REHEARSAL_RUN: '17' is none of --seed, --faults, --without, --strategy, --benign, "
            "--decide");
  EXPECT_EQ(refusal_of("REHEARSAL_RUN", "@/no/such"),
            "REHEARSAL_RUN: /no/such cannot be read: No such file or directory");
  EXPECT_EQ(refusal_of("REHEARSAL_COMMIT", "main"),
            "REHEARSAL_COMMIT: 'main' is no commit: give its id, 7 to 64 hexadecimal digits");
  EXPECT_EQ(refusal_of("REHEARSAL_SEEDS", "0"), "REHEARSAL_SEEDS: 0: give a whole number from 1");
  EXPECT_EQ(refusal_of("REHEARSAL_SECONDS", "1m"), "REHEARSAL_SECONDS: 1m: give a whole number");
  EXPECT_EQ(refusal_of("REHEARSAL_SHARD", "3/2"),
            "REHEARSAL_SHARD: 3/2: give I/N with I from 0 to N-1, for example 0/4");
  EXPECT_EQ(refusal_of("REHEARSAL_SHARD", "3"),
            "REHEARSAL_SHARD: 3: give I/N with I from 0 to N-1, for example 0/4");
}

}  // namespace
}  // namespace rehearsal::sim
