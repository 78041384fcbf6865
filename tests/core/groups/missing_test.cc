// Goal: a join that takes long, or too long, names who keeps it from ending, and nobody else.
// Method: four workers on a network on which the test says who meets whom, and who falls silent.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/groups/static_group.h"
#include "tests/core/groups/group_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::seconds;

constexpr const char* kTooLate = "not all workers have joined in time; missing: ";

class MissingTest : public GroupFixture {
 protected:
  MissingTest() : GroupFixture({"a", "b", "c", "d"}) {}

  void SetUp() override {
    begin();
    for (const auto& member : members) member->join(seconds(20));
  }
  void meet(const std::vector<std::pair<uint32_t, uint32_t>>& pairs) {
    for (const auto& [one, other] : pairs) network.connect(one, other);
  }
  // Ticks pass, and all that the workers say of them arrives.
  void pass(Duration time) {
    for (Duration passed{}; passed < time; passed += seconds(1)) {
      world.advance(seconds(1));
      network.deliver_all();
    }
  }
  std::string error_of(uint32_t worker) {
    const auto& joined = members[worker]->joined;
    return joined && !joined->ok() ? joined->error().text : "none";
  }
  void refuse(uint32_t at, uint32_t peer, const Refusals& refusals) {
    members[at]->runtime->post([&] { members[at]->sessions.on_refused({peer}, refusals); });
  }
};

TEST_F(MissingTest, WhoHasNotBeenMetIsToBlameForThoseThatAreNotReady) {
  // Goal: nobody names those that are there and wait, too. Method: d is met by nobody.
  meet({{0, 1}, {0, 2}, {1, 2}});
  pass(seconds(20));
  for (const uint32_t worker : {0u, 1u, 2u})
    EXPECT_EQ(error_of(worker), std::string(kTooLate) + "'d' (never met)");
  EXPECT_EQ(error_of(3),
            std::string(kTooLate) + "'a' (never met), 'b' (never met), 'c' (never met)");
}

TEST_F(MissingTest, APortThatRefusesIsToldWithItsAddressForAsLongAsItDoes) {
  // Goal: a worker that has died after it had said where it is. Method: refusals, the last of them
  // now, and five seconds later none.
  pass(seconds(12));
  refuse(0, 3, {.count = 20, .lasting = seconds(11), .at = "10.0.0.4:4711"});
  EXPECT_EQ(a().sessions.absence({3}), "at 10.0.0.4:4711, refuses since 11 s");
  refuse(0, 3, {.count = 21, .lasting = seconds(12)});
  EXPECT_EQ(a().sessions.absence({3}), "refuses since 12 s");
  pass(seconds(5));
  EXPECT_EQ(a().sessions.absence({3}), "refuses since 17 s");
  pass(seconds(1));
  EXPECT_EQ(a().sessions.absence({3}), "never met");
  refuse(0, 3, {.count = 22, .lasting = seconds(18)});
  network.connect(0, 3);
  EXPECT_EQ(a().sessions.absence({3}), "");
  network.cut(0, 3);
  EXPECT_EQ(a().sessions.absence({3}), "silent for 0 ms");
}

TEST_F(MissingTest, TwoThatNeverMeetAreNamedByThoseWhoHaveMetBoth) {
  // Goal: the break is between two others. Method: b and c never meet, all others do.
  meet({{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}});
  pass(seconds(19));
  const std::string both = "'b' (which misses 'c'), 'c' (which misses 'b')";
  EXPECT_EQ(a().group.describe(), "join waits for " + both + "\n");
  EXPECT_EQ(b().group.describe(), "join waits for 'c' (never met)\n");
  pass(seconds(1));
  for (const uint32_t worker : {0, 3}) EXPECT_EQ(error_of(worker), std::string(kTooLate) + both);
  EXPECT_EQ(error_of(1), std::string(kTooLate) + "'c' (never met)");
}

TEST_F(MissingTest, OneThatFellSilentExplainsThoseThatWaitForIt) {
  // Goal: a has met all, and still names d only. Method: the link of a and d is lost before d says
  // anything; the others never meet d.
  meet({{0, 1}, {0, 2}, {1, 2}, {0, 3}});
  network.cut(0, 3);
  pass(seconds(20));
  EXPECT_EQ(error_of(0), std::string(kTooLate) + "'d' (silent for 20 s)");
  for (const uint32_t worker : {1, 2})
    EXPECT_EQ(error_of(worker), std::string(kTooLate) + "'d' (never met)");
}

TEST_F(MissingTest, TheStoryOfAnotherIsToldAsItIs) {
  // Goal: the first to give up does not put itself in front of why. Method: farewells that are
  // about the sender, and about another one.
  const auto farewell = [this](uint32_t from, const Error& why) {
    members[from]->runtime->post(
        [&] { members[from]->sessions.send(WorkerId{0}, Message{Goodbye{why}}); });
    network.deliver_all();
  };
  network.connect(0, 1);
  Error story{.kind = ErrorKind::timeout, .text = "missing: 'd'", .worker = "d"};
  farewell(1, story);
  ASSERT_TRUE(a().joined.has_value());
  story.chain = {"b"};
  EXPECT_EQ(a().joined->error(), story) << to_string(a().joined->error());
  members[0] = make(0);
  a().join();
  network.connect(0, 2);
  farewell(2, {.kind = ErrorKind::storage, .text = "no disk", .worker = "c"});
  ASSERT_TRUE(a().joined.has_value());
  EXPECT_EQ(a().joined->error(), (Error{.kind = ErrorKind::peer_lost,
                                        .text = "worker 'c' has ended: no disk",
                                        .worker = "c"}));
  members[0] = make(0);
  a().join();
  network.connect(0, 3);
  farewell(3, {.text = "it was he", .worker = "nobody"});
  ASSERT_TRUE(a().joined.has_value());
  EXPECT_EQ(a().joined->error().worker, "d") << "that story is of no worker of the group";
}

}  // namespace
}  // namespace rehearsal
