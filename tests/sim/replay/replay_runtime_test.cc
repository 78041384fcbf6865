// Which stack a wanted task is taken from, where threads have let go of a thing in another order.
#include "sim/replay/replay_runtime.h"

#include <ATen/SequenceNumber.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash.h"

namespace rehearsal::sim {
namespace {

using record::Source;

constexpr Source kMain{Source::Kind::main, 0};
constexpr Source kStrand{Source::Kind::strand, 0};
constexpr Source kFirstExecution{Source::Kind::execution, 1};

class ReplayRuntimeTest : public testing::Test {
 protected:
  ~ReplayRuntimeTest() override {
    runtime_->finish([] {}, [] {});
  }

  // An object that posts when its last owner drops it.
  class Shared {
   public:
    Shared(ReplayRuntimeTest& test, std::string name) : test_(test), name_(std::move(name)) {}
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared() { test_.runtime_->post(Tagged(hash_text(name_), Release{&test_.released_, name_})); }

   private:
    ReplayRuntimeTest& test_;
    const std::string name_;
  };
  struct Release {
    std::vector<std::string>* released;
    std::string name;
    void operator()() const { released->push_back(name); }
  };

  [[nodiscard]] std::shared_ptr<Shared> shared(const std::string& name) {
    return std::make_shared<Shared>(*this, name);
  }
  // That this source released the thing of that name.
  [[nodiscard]] record::Posted release_by(Source from, const std::string& name) {
    const Task task(Tagged(hash_text(name), Release{}));
    return {.from = from, .code = codes_.word_of(task), .readings = {}};
  }
  // Whether the record's next entry is to be had. It runs.
  [[nodiscard]] bool take(Source from, const std::string& name) {
    std::optional<Task> task = runtime_->take(release_by(from, name));
    if (task) runtime_->on_strand(*task);
    return task.has_value();
  }

  std::shared_ptr<ReplayRuntime> runtime_ =
      std::make_shared<ReplayRuntime>([] { return Instant{}; });
  Execution main_{{}, "main", Seed{1}};
  Execution execution_{{}, "release", Seed{1}};
  record::CodeNames codes_;
  std::vector<std::string> released_;
};

TEST_F(ReplayRuntimeTest, WhatSomebodyElseLetsGoOfLastIsTakenFromThere) {
  // In the record the execution was the last to drop what it shared with the main.
  auto both = shared("both");
  runtime_->expect(release_by(kFirstExecution, "both"));
  runtime_->start_main(main_, [copy = both]() mutable { copy.reset(); });
  runtime_->on_strand([&] {
    runtime_->execute(execution_, StackPlacement::inline_,
                      [copy = std::move(both)]() mutable { copy.reset(); });
  });
  EXPECT_TRUE(take(kFirstExecution, "both"));
  EXPECT_EQ(released_, std::vector<std::string>{"both"});
}

TEST_F(ReplayRuntimeTest, WhoeverDropsOneThingTooManyMayDropItFirst) {
  // The main also drops two things of its own, behind the shared one: the record has two releases
  // by the main, and here it offers another one before them.
  auto both = shared("both");
  runtime_->expect(release_by(kFirstExecution, "both"));
  runtime_->expect(release_by(kMain, "one"));
  runtime_->expect(release_by(kMain, "two"));
  runtime_->start_main(main_, [this, copy = both]() mutable {
    auto one = shared("one");
    auto two = shared("two");
    copy.reset();
    one.reset();
    two.reset();
  });
  runtime_->on_strand([&] {
    runtime_->execute(execution_, StackPlacement::inline_,
                      [copy = std::move(both)]() mutable { copy.reset(); });
  });
  EXPECT_TRUE(take(kFirstExecution, "both"));
  EXPECT_TRUE(take(kMain, "one"));
  EXPECT_TRUE(take(kMain, "two"));
  EXPECT_EQ(released_, (std::vector<std::string>{"both", "one", "two"}));
}

TEST_F(ReplayRuntimeTest, AReleaseIsFoundBehindWhatItsStackTellsOfItsNodes) {
  // In the record the execution was the last to drop what it shared with the main, which had made
  // nodes since it last posted, and told of them only later.
  auto both = shared("both");
  runtime_->expect(release_by(kFirstExecution, "both"));
  runtime_->expect(release_by(kMain, "nodes"));
  runtime_->expect(release_by(kMain, "later"));
  runtime_->start_main(main_, [this, copy = both]() mutable {
    at::sequence_number::get_and_increment();
    shared("nodes").reset();
    copy.reset();
    shared("later").reset();
  });
  runtime_->on_strand([&] {
    runtime_->execute(execution_, StackPlacement::inline_,
                      [copy = std::move(both)]() mutable { copy.reset(); });
  });
  EXPECT_TRUE(take(kFirstExecution, "both"));
  EXPECT_TRUE(take(kMain, "nodes"));
  EXPECT_TRUE(take(kMain, "later"));
  EXPECT_EQ(released_, (std::vector<std::string>{"nodes", "both", "later"}));
}

TEST_F(ReplayRuntimeTest, ReleasesOfOneTypeAreToldApart) {
  // In the record the main let go of its own thing, and then the execution of what they shared.
  // Here the main drops that one last too, and first.
  runtime_->expect(release_by(kMain, "own"));
  runtime_->expect(release_by(kFirstExecution, "both"));
  runtime_->start_main(main_, [this] {
    auto both = shared("both");
    auto own = shared("own");
    both.reset();
    own.reset();
  });
  EXPECT_TRUE(take(kMain, "own"));
  EXPECT_TRUE(take(kFirstExecution, "both"));
  EXPECT_EQ(released_, (std::vector<std::string>{"own", "both"}));
}

TEST_F(ReplayRuntimeTest, OfTwoThatDoTheSameTheFirstServesForEither) {
  // The main holds two handles of one value. In the record the execution was the last to drop the
  // one that it shared with the main, and then the main dropped the other one.
  auto handle = shared("value");
  runtime_->expect(release_by(kFirstExecution, "value"));
  runtime_->expect(release_by(kMain, "value"));
  runtime_->start_main(main_, [this, copy = handle]() mutable {
    auto other = shared("value");
    copy.reset();
    other.reset();
  });
  runtime_->on_strand([&] {
    runtime_->execute(execution_, StackPlacement::inline_,
                      [copy = std::move(handle)]() mutable { copy.reset(); });
  });
  EXPECT_TRUE(take(kFirstExecution, "value"));
  EXPECT_TRUE(take(kMain, "value"));
  EXPECT_EQ(released_, (std::vector<std::string>{"value", "value"}));
}

TEST_F(ReplayRuntimeTest, WhatTheStrandLetsGoOfLastIsTakenFromThere) {
  // In the record the main was the last to drop what it shared with the strand, whose own next task
  // ran before. Here the strand drops it last, before it posts that task.
  auto both = shared("both");
  runtime_->expect(release_by(kStrand, "next"));
  runtime_->expect(release_by(kMain, "both"));
  runtime_->start_main(main_, [copy = both]() mutable { copy.reset(); });
  runtime_->run_out();
  runtime_->on_strand([&] {
    both.reset();
    shared("next").reset();
  });
  EXPECT_TRUE(take(kStrand, "next"));
  EXPECT_TRUE(take(kMain, "both"));
  EXPECT_EQ(released_, (std::vector<std::string>{"next", "both"}));
}

TEST_F(ReplayRuntimeTest, WhatTheStrandLetGoOfLastMayBeAStacksHere) {
  // The other way round.
  auto both = shared("both");
  runtime_->expect(release_by(kStrand, "both"));
  runtime_->expect(release_by(kStrand, "next"));
  runtime_->start_main(main_, [copy = both]() mutable { copy.reset(); });
  runtime_->on_strand([&] {
    both.reset();
    shared("next").reset();
  });
  EXPECT_TRUE(take(kStrand, "both"));
  EXPECT_TRUE(take(kStrand, "next"));
  EXPECT_EQ(released_, (std::vector<std::string>{"both", "next"}));
}

TEST_F(ReplayRuntimeTest, TheStrandsOwnTasksKeepTheirOrder) {
  runtime_->expect(release_by(kStrand, "second"));
  runtime_->expect(release_by(kStrand, "first"));
  runtime_->on_strand([&] {
    shared("first").reset();
    shared("second").reset();
  });
  EXPECT_FALSE(take(kStrand, "second"));
}

TEST_F(ReplayRuntimeTest, WhatNobodyPostsIsMissed) {
  runtime_->expect(release_by(kMain, "own"));
  runtime_->start_main(main_, [] {});
  EXPECT_FALSE(take(kMain, "own"));
}

}  // namespace
}  // namespace rehearsal::sim
