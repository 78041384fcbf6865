#include "core/base/symbols.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace rehearsal {
namespace {

int hidden_function(int number) { return number + 1; }

TEST(Symbols, TypesAreNamedAsTheyAreWritten) {
  struct Local {};
  EXPECT_EQ(type_name(typeid(int)), "int");
  EXPECT_EQ(type_name(typeid(ProgramSymbols)), "rehearsal::ProgramSymbols");
  EXPECT_NE(type_name(typeid(Local)).find("Local"), std::string::npos);
  EXPECT_EQ(demangled("no symbol"), "no symbol");
}

TEST(Symbols, AFunctionThatNoOtherFileSeesIsNamed) {
  // Goal: the program's own table is read, not what the loader knows. Method: a function of this
  // file alone, from its beginning and from within; one of a library; an address of none.
  using Function = int (*)(int);
  volatile Function function = &hidden_function;  // It stays a function.
  const char* const code = reinterpret_cast<const char*>(function);
  const ProgramSymbols symbols;
  const std::string name = "rehearsal::(anonymous namespace)::hidden_function(int)";
  EXPECT_EQ(symbols.function_at(code), name);
  EXPECT_EQ(symbols.function_at(code + 1), name);
  EXPECT_EQ(symbols.function_at(reinterpret_cast<const void*>(&std::atoi)), "atoi");
  EXPECT_EQ(symbols.function_at(nullptr), "");
}

}  // namespace
}  // namespace rehearsal
