#include "core/api/program.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace rehearsal {
namespace {

void does_nothing() {}

TEST(ProgramFunctions, WhoseNamesDoNotFitAGreetingAreRefused) {
  // Goal: a worker says all its functions when a link is made; more than fits there is refused
  // before anything runs, in both worlds. Method: one long name that fits, and one that does not.
  FunctionRegistry fits;
  fits.function(std::string(1'000'000, 'f'), &does_nothing);
  EXPECT_NO_THROW(Program{fits});
  FunctionRegistry too_long;
  too_long.function(std::string(1 << 20, 'f'), &does_nothing);
  try {
    const Program program(too_long);
    ADD_FAILURE() << "it was taken";
  } catch (const std::invalid_argument& refused) {
    const std::string why = refused.what();
    EXPECT_NE(why.find("where 1044480 are allowed"), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace rehearsal
