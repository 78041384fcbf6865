#include "command_line/options.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <stdexcept>

#include "command_line/wrong_use.h"

namespace rehearsal {
namespace {

OptionTable table() {
  OptionTable table;
  table.integer("epochs", {10, 2, 1, 100, "passes over the text"})
      .real("rate", {0.5, 0.25, 0, 1, "a number"})
      .choice("order", {{"joined", "apart"}, "a choice"})
      .path("text", {"/usr/share/text", "a file"});
  return table;
}

TEST(Options, DefaultsGoBySize) {
  // Goal: size chooses the defaults, whichever way it is chosen. Method: both sizes, both ways.
  EXPECT_EQ(table().parse({}, "full").integer("epochs"), 10);
  EXPECT_EQ(table().parse({}, "tiny").real("rate"), 0.25);
  EXPECT_EQ(table().parse({"epochs=3", "size=full"}, "tiny").real("rate"), 0.5);
  EXPECT_EQ(table().parse({"size=tiny", "epochs=3"}, "full").integer("epochs"), 3);
}

TEST(Options, AssignmentsGiveTheSameValuesToRun) {
  // Goal: the line that repeats a run is complete and short. Method: parse them again at size full.
  const Options options = table().parse({"epochs=2", "rate=1", "order=apart"}, "tiny");
  EXPECT_EQ(options.assignments(),
            (std::vector<std::string>{"size=tiny", "rate=1", "order=apart"}));
  EXPECT_EQ(table().parse(options.assignments(), "full").all(), options.all());
}

TEST(Options, MachinesShareAllValuesButTheNamesOfFiles) {
  // Goal: a file may lie elsewhere on another machine; nothing else may differ. Method: all names.
  const Options options = table().parse({"text=/somewhere", "rate=1"}, "tiny");
  EXPECT_EQ(table().shared(options),
            (std::map<std::string, std::string>{
                {"epochs", "2"}, {"order", "joined"}, {"rate", "1"}, {"size", "tiny"}}));
}

TEST(Options, SmallerOnesHaveOneWholeNumberLess) {
  // Goal: what shrinking tries. Method: a number far from its least, next to it, and at it.
  const auto epochs = [](const std::string& given) {
    const OptionTable options = table();
    std::vector<int64_t> tried;
    for (const Options& smaller : options.smaller(options.parse({given, "rate=1"}, "tiny"))) {
      tried.push_back(smaller.integer("epochs"));
      EXPECT_EQ(smaller.real("rate"), 1);
      EXPECT_EQ(smaller.text("size"), "tiny");
    }
    return tried;
  };
  EXPECT_EQ(epochs("epochs=9"), (std::vector<int64_t>{1, 5, 8}));
  EXPECT_EQ(epochs("epochs=2"), (std::vector<int64_t>{1}));
  EXPECT_TRUE(epochs("epochs=1").empty());
}

TEST(Options, ASeedDrawsWhatIsNotGiven) {
  // Goal: every value of the range comes up, each seed has its own, what was given stays, and so
  // does all if that was the size. Method: many seeds, three ways to begin.
  OptionTable options = table();
  options.integer("workers", {4, 3, 1, 64, "of the group", 2, 5});
  std::set<int64_t> workers;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Options tiny = options.parse({"epochs=7"}, "tiny");
    const Options drawn = options.drawn(tiny, Seed{seed});
    workers.insert(drawn.integer("workers"));
    EXPECT_EQ(drawn.integer("epochs"), 7);
    EXPECT_EQ(drawn.text("size"), "tiny");
    EXPECT_EQ(options.parse(drawn.assignments(), "full").all(), drawn.all());
    EXPECT_EQ(options.drawn(tiny, Seed{seed}).all(), drawn.all());
    for (const char* given : {"workers=3", "size=tiny"}) {
      const Options kept = options.parse({given}, "tiny");
      EXPECT_EQ(options.drawn(kept, Seed{seed}).all(), kept.all()) << given;
    }
  }
  EXPECT_EQ(workers, (std::set<int64_t>{2, 3, 4, 5}));
}

TEST(Options, RealsAreShownExactly) {
  // Goal: no digit is lost between processes. Method: a number that has no short decimal form.
  const Options options = table().parse({"rate=0.30000000000000004"}, "full");
  EXPECT_EQ(table().parse(options.assignments(), "full").real("rate"), 0.1 + 0.2);
}

TEST(Options, PathsBecomeAbsolute) {
  // Goal: a process that starts elsewhere reads the same file. Method: a relative path.
  EXPECT_EQ(table().parse({"text=a/../b"}, "full").text("text"),
            (std::filesystem::current_path() / "b").string());
}

TEST(Options, UnknownNamesAndTypesAreOurMistake) {
  // Goal: a scenario that asks for what it did not declare hears of it. Method: wrong name, type.
  const Options options = table().parse({}, "full");
  EXPECT_THROW(static_cast<void>(options.integer("epoch")), std::out_of_range);
  EXPECT_THROW(static_cast<void>(options.real("epochs")), std::out_of_range);
}

}  // namespace
}  // namespace rehearsal
