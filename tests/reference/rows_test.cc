// Goal: the table in tests/README.md names a test for each row of rows.txt, and only tests that
// there are. Method: the table is compared with what the tests say of themselves, in the lines
// "// Rows: SUITE.test, SUITE.{test, test}" before each.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace rehearsal::reference::rows_test {
namespace {

using Names = std::set<std::string>;

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// "a::B.{c, d}, e::F.g" as a::B.c, a::B.d, e::F.g.
Names names_in(const std::string& text) {
  static const std::regex group(R"(([\w/]+::\w+)\.(?:\{([^}]*)\}|(\w+)))");
  static const std::regex word(R"(\w+)");
  Names names;
  for (std::sregex_iterator found(text.begin(), text.end(), group), end; found != end; ++found) {
    const std::string tests = (*found)[2].matched ? (*found)[2].str() : (*found)[3].str();
    for (std::sregex_iterator test(tests.begin(), tests.end(), word); test != end; ++test)
      names.insert((*found)[1].str() + "." + test->str());
  }
  return names;
}

// The rows that each test of ours says it stands for.
std::map<std::string, Names> tests_with_rows() {
  static const std::regex test(R"(^TEST(?:_F|_P)?\((\w+), (\w+)\))");
  std::map<std::string, Names> tests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests")) {
    if (entry.path().extension() != ".cc") continue;
    std::string rows;
    for (const std::string& line : lines_of(entry.path())) {
      std::smatch found;
      if (line.starts_with("// Rows: ")) {
        rows += line.substr(9) + ' ';
      } else if (std::regex_search(line, found, test)) {
        if (!rows.empty()) tests[found[1].str() + "." + found[2].str()] = names_in(rows);
        rows.clear();
      }
    }
  }
  return tests;
}

// SUITE.{test, test} for each suite.
std::string text_of(const Names& names) {
  std::map<std::string, std::vector<std::string>> suites;
  for (const std::string& name : names)
    suites[name.substr(0, name.rfind('.'))].push_back(name.substr(name.rfind('.') + 1));
  std::string text;
  for (const auto& [suite, tests] : suites) {
    if (!text.empty()) text += ", ";
    text += suite + (tests.size() == 1 ? "." : ".{");
    for (const std::string& test : tests) text += (&test == &tests[0] ? "" : ", ") + test;
    if (tests.size() > 1) text += '}';
  }
  return text;
}

Names rows_wanted() {
  std::vector<std::string> whole;  // Lines that begin with a space belong to the one before.
  for (const std::string& line : lines_of("tests/reference/rows.txt")) {
    if (line.starts_with("  "))
      whole.back() += line.substr(2);
    else
      whole.push_back(line);
  }
  Names rows;
  for (const std::string& line : whole) {
    std::istringstream words(line);
    std::string area, name;
    words >> area >> name;
    if (!name.empty() && area != "#") rows.insert(name);
  }
  return rows;
}

TEST(ReferenceRows, EachRowHasATestAndEachTestARow) {
  const Names wanted = rows_wanted();
  ASSERT_GT(wanted.size(), 300u);
  Names tested;
  for (const auto& [test, rows] : tests_with_rows())
    for (const std::string& row : rows) {
      EXPECT_TRUE(wanted.contains(row)) << test << " names a row that there is not: " << row;
      tested.insert(row);
    }
  for (const std::string& row : wanted)
    EXPECT_TRUE(tested.contains(row)) << "no test names " << row;
}

TEST(ReferenceRows, TheTableSaysWhatTheTestsSay) {
  std::map<std::string, Names> table;
  for (const std::string& line : lines_of("tests/README.md")) {
    static const std::regex row(R"(^\| (.*::.*) \| `(\w+\.\w+)` \|$)");
    std::smatch found;
    if (std::regex_match(line, found, row)) table[found[2]] = names_in(found[1]);
  }
  std::string should_be;
  for (const auto& [test, rows] : tests_with_rows())
    should_be += "| " + text_of(rows) + " | `" + test + "` |\n";
  EXPECT_EQ(table, tests_with_rows()) << "the table should be:\n" << should_be;
}

}  // namespace
}  // namespace rehearsal::reference::rows_test
