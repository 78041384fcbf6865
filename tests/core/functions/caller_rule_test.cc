#include "core/functions/caller_rule.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/functions/function_registry.h"
#include "core/functions/script_library.h"

namespace rehearsal {
namespace {

int64_t one() { return 1; }
int64_t two() { return 2; }
struct Table {
  explicit Table(int64_t number) : rows(number) {}
  int64_t size() { return rows; }
  void clear() { rows = 0; }
  int64_t rows;
};

std::string callers_of(const FunctionRegistry& registry, const std::string& name) {
  return registry.functions().at(registry.position(name).value()).callers.text();
}

TEST(CallerRule, WithoutEntriesAdmitsEverybody) {
  EXPECT_TRUE(CallerRule().admits("trainer0"));
  EXPECT_TRUE(CallerRule().admits_everybody());
  EXPECT_EQ(CallerRule().text(), "");
}

TEST(CallerRule, AdmitsNamesAndWhatACountMakesOfThem) {
  // Goal: nobody else, however alike the name is.
  const CallerRule rule({"master", "ps1"});
  EXPECT_EQ(rule.text(), "'master', 'ps1'");
  for (const char* const name : {"master", "master0", "master15", "ps1"})
    EXPECT_TRUE(rule.admits(name)) << name;
  for (const char* const name : {"", "maste", "masterx", "master0x", "master-0", "amaster",
                                 "Master", "ps", "ps10", "ps11", "ps0", "master 0", "master0\n"})
    EXPECT_FALSE(rule.admits(name)) << name;
}

TEST(CallerRule, NamesSomebody) {
  EXPECT_THROW(CallerRule(std::vector<std::string>()), std::invalid_argument);
  EXPECT_THROW(CallerRule({"master", ""}), std::invalid_argument);
}

TEST(CallerRule, IsThatOfTheFunctionRegisteredLast) {
  FunctionRegistry registry;
  EXPECT_THROW(registry.callable_by({"master"}), std::invalid_argument);
  registry.function("one", &one).callable_by({"master"}).function("two", &two);
  EXPECT_EQ(callers_of(registry, "one"), "'master'");
  EXPECT_EQ(callers_of(registry, "two"), "");
  EXPECT_THROW(registry.callable_by({}), std::invalid_argument);
}

TEST(CallerRule, OfATypeIsThatOfAllThatFollowsUnlessThatHasItsOwn) {
  FunctionRegistry registry;
  registry.type<Table>("Table")
      .callable_by({"trainer"})
      .constructor<int64_t>()
      .method("size", &Table::size)
      .method("clear", &Table::clear)
      .callable_by({"master"});
  EXPECT_EQ(callers_of(registry, "Table(int64,)"), "'trainer'");
  EXPECT_EQ(callers_of(registry, "Table.size"), "'trainer'");
  EXPECT_EQ(callers_of(registry, "Table.clear"), "'master'");
  EXPECT_EQ(registry.callers_of(typeid(Table))->text(), "'trainer'");
  EXPECT_EQ(registry.type_name(typeid(Table)), "Table");
}

TEST(CallerRule, OfAMethodLeavesItsTypeAsItIs) {
  FunctionRegistry registry;
  registry.type<Table>("Table")
      .constructor<int64_t>()
      .method("clear", &Table::clear)
      .callable_by({"master"});
  EXPECT_EQ(callers_of(registry, "Table(int64,)"), "");
  EXPECT_EQ(callers_of(registry, "Table.clear"), "'master'");
  EXPECT_EQ(registry.callers_of(typeid(Table)), nullptr);
}

TEST(CallerRule, OfAScriptIsThatOfAllItsFunctions) {
  FunctionRegistry registry;
  registry.function("one", &one)
      .script("lib", "def f(x):\n  return x\ndef g(x):\n  return x\n")
      .callable_by({"trainer"});
  EXPECT_EQ(callers_of(registry, "script::lib.f"), "'trainer'");
  EXPECT_EQ(callers_of(registry, "script::lib.g"), "'trainer'");
  EXPECT_EQ(callers_of(registry, "one"), "");
}

TEST(CallerRule, OfScriptModulesIsGivenBeforeTheyAreRegistered) {
  FunctionRegistry registry;
  registry.type<ScriptModule>("ScriptModule").callable_by({"trainer"});
  registry.script_modules().script_modules();
  EXPECT_EQ(callers_of(registry, "ScriptModule.call"), "'trainer'");
  EXPECT_EQ(callers_of(registry, "ScriptModule.train"), "'trainer'");
}

TEST(CallerRule, IsTheCalleesOwn) {
  // Goal: workers with other rules, and other allowed operators, fit each other.
  FunctionRegistry open;
  open.function("one", &one);
  FunctionRegistry closed;
  closed.function("one", &one).callable_by({"master"});
  closed.operators({"aten::empty"}).operators_callable_by({"master"}).operator_memory_max(1);
  EXPECT_EQ(open.describe(), closed.describe());
}

}  // namespace
}  // namespace rehearsal
