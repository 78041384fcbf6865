// Look-ups that wait for a name, of executions that give up.
#include "core/rref/published_names.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/core/base/node_strand_fixture.h"

namespace rehearsal {
namespace {

class PublishedNamesTest : public NodeStrandFixture {
 protected:
  using Found = std::shared_ptr<FutureState<NamedReference>>;

  Found look_up(Execution& asker) {
    auto found = std::make_shared<FutureState<NamedReference>>(strand_, CausalId{});
    on_strand([&] { names_.look_up("name", "int", asker, found); });
    return found;
  }
  // In the given order, as nobody waits for any of them any more.
  void give_up(std::vector<Task*> tasks) {
    on_strand([&] {
      for (Task* const task : tasks) (*task)();
    });
  }
  std::shared_ptr<Execution> asker() {
    return strand_->make_execution(CausalId{{9}, {3, 4}, askers_++}, "asker");
  }

  const SessionOptions options_;
  PublishedNames names_{options_, *strand_};
  uint64_t askers_ = 0;
};

TEST_F(PublishedNamesTest, OneThatGivesUpLeavesTheOthersWaiting) {
  // Method: the second of three gives up, then the name is published; it gives up once more.
  std::vector<std::shared_ptr<Execution>> askers = {asker(), asker(), asker()};
  std::vector<Found> found;
  for (const auto& one : askers) found.push_back(look_up(*one));
  EXPECT_EQ(names_.waiting(), 3u);
  give_up({&askers[1]->when_given_up.front()});
  EXPECT_EQ(names_.waiting(), 2u);
  const Error error = Future<NamedReference>(found[1]).result().error();
  EXPECT_EQ(error.kind, ErrorKind::cancelled);
  EXPECT_EQ(error.text, "whoever looked 'name' up has given up");
  on_strand([&] { EXPECT_TRUE(names_.publish("name", {.handle = {}, .type = "int"}).ok()); });
  EXPECT_EQ(names_.waiting(), 0u);
  for (const size_t i : {0u, 2u})
    EXPECT_EQ(Future<NamedReference>(found[i]).result().value().type, "int");
  give_up({&askers[1]->when_given_up.front(), &askers[0]->when_given_up.front()});
  EXPECT_EQ(names_.size(), 1u);
}

TEST_F(PublishedNamesTest, NothingIsPublishedAtTheEndUnlessOthersWorkOn) {
  // Method: a name is published, released with all others, and refused; then others work on.
  const NamedReference reference{.handle = {}, .type = "int"};
  const Error ends{.kind = ErrorKind::peer_lost, .text = "worker 'w' shuts down", .worker = "w"};
  on_strand([&] {
    EXPECT_TRUE(names_.publish("name", reference).ok());
    names_.publish_no_more(ends);
    EXPECT_TRUE(names_.unpublish("name").ok());
    EXPECT_TRUE(names_.unpublish("name").ok());
    const Status refused = names_.publish("name", reference);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::peer_lost);
    EXPECT_EQ(refused.error().text, "worker 'w' shuts down, and publishes nothing any more");
    names_.publish_again();
    EXPECT_TRUE(names_.publish("name", reference).ok());
  });
  EXPECT_EQ(names_.size(), 1u);
}

TEST_F(PublishedNamesTest, ManyThatGiveUpCostNoMoreEachThanFew) {
  // Goal: a peer that has very many look-ups of one name given up holds nobody up. Method: so many,
  // from the last to the first, that looking through all of them for each takes longer than a test
  // has.
  constexpr size_t kLookUps = 400'000;
  const std::shared_ptr<Execution> one = asker();
  for (size_t i = 0; i < kLookUps; ++i) static_cast<void>(look_up(*one));
  EXPECT_EQ(names_.waiting(), kLookUps);
  std::vector<Task*> tasks;
  for (auto task = one->when_given_up.rbegin(); task != one->when_given_up.rend(); ++task)
    tasks.push_back(&*task);
  ASSERT_EQ(tasks.size(), kLookUps);
  give_up(std::move(tasks));
  EXPECT_EQ(names_.waiting(), 0u);
  EXPECT_EQ(names_.debug_info(), "");
}

}  // namespace
}  // namespace rehearsal
