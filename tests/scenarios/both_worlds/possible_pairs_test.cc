// Whether the faults and strategies of a hunt bring together all that can come together.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "tests/scenarios/tool_run.h"

namespace rehearsal::command_line {
namespace {

using Pair = std::tuple<std::string, std::string, std::string>;  // table, row, column
using Pairs = std::set<Pair>;

Pairs pairs_of(const std::string& command) {
  const ToolRun run = run_tool(command + " --coverage --json");
  EXPECT_EQ(run.status, 0) << command << "\n" << run.out << run.err;
  Pairs pairs;
  const Json json = run.json();
  for (const auto& [table, rows] : json.at("coverage").items())
    for (const auto& [row, columns] : rows.items())
      for (const auto& [column, runs] : columns.items()) pairs.emplace(table, row, column);
  return pairs;
}

std::string told(const Pairs& pairs) {
  std::string text;
  for (const auto& [table, row, column] : pairs)
    text += "\n  " + table + ": " + row + ", " + column;
  return text;
}

class PossiblePairs : public testing::TestWithParam<const char*> {};

TEST_P(PossiblePairs, ComeUpInAHundredThousandSeeds) {
  // Goal: no pair of messages, of a message and its receiver's tables, or of a message and a fault
  // is left out by the way in which a hunt draws. Method: those that come up where the orders of a
  // small program are run, with each kind of fault, are looked for in the ways in which a hunt
  // without a name searches.
  const std::string scenario = GetParam();
  Pairs missing;
  for (const char* fault : {"none", "cut:0,1", "cut:0,2", "cut:1,2", "crash:0", "crash:1",
                            "crash:2", "give_up:0,1", "give_up:1,2", "give_up:2,0"})
    missing.merge(pairs_of("explore " + scenario + " --for 500runs --only " + fault));
  EXPECT_GT(missing.size(), 100u);
  constexpr uint64_t kSeeds = 100'000;
  uint64_t first = 1;
  for (uint64_t seeds = 500; !missing.empty() && first < kSeeds; first += seeds, seeds *= 2)
    for (const char* way : {" --faults hostile --partitions long --pauses long",
                            " --faults hostile --crashes 1 --restarts drawn", ""})
      if (!missing.empty())
        for (const Pair& pair :
             pairs_of("hunt " + scenario + " --jobs 1 --seeds " + std::to_string(seeds) +
                      " --first-seed " + std::to_string(first) + way))
          missing.erase(pair);
  EXPECT_TRUE(missing.empty()) << "in " << first << " seeds never:" << told(missing);
}

INSTANTIATE_TEST_SUITE_P(Programs, PossiblePairs, testing::Values("rref_fork", "small_pass"),
                         [](const auto& given) { return std::string(given.param); });

}  // namespace
}  // namespace rehearsal::command_line
