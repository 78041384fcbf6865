// Which stack a wanted task is taken from, where threads have let go of a thing in another order.
#include "sim/replay/replay_runtime.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rehearsal::sim {
namespace {

using record::Source;

constexpr Source kMain{Source::Kind::main, 0};
constexpr Source kFirstExecution{Source::Kind::execution, 1};

class ReplayRuntimeTest : public testing::Test {
 protected:
  ~ReplayRuntimeTest() override {
    runtime_->finish([] {});
  }

  // What whoever drops it last posts.
  class Shared {
   public:
    Shared(ReplayRuntimeTest& test, std::string name) : test_(test), name_(std::move(name)) {}
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared() { test_.runtime_->post(Release{&test_.released_, name_}); }

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
  [[nodiscard]] record::Posted release_by(Source from) {
    static const Task task(Release{});
    return {.from = from, .code = codes_.word_of(task.type()), .readings = {}};
  }
  // Whether the record's next entry is to be had. It runs.
  [[nodiscard]] bool take(Source from) {
    std::optional<Task> task = runtime_->take(release_by(from));
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
  runtime_->expect(release_by(kFirstExecution));
  runtime_->start_main(main_, [copy = both]() mutable { copy.reset(); });
  runtime_->on_strand([&] {
    runtime_->execute(execution_, Where::inline_,
                      [copy = std::move(both)]() mutable { copy.reset(); });
  });
  EXPECT_TRUE(take(kFirstExecution));
  EXPECT_EQ(released_, std::vector<std::string>{"both"});
}

TEST_F(ReplayRuntimeTest, WhoeverDropsOneThingTooManyMayDropItFirst) {
  // The main also drops two things of its own, behind the shared one: the record has two releases
  // by the main, of which it offers the first too early.
  auto both = shared("both");
  runtime_->expect(release_by(kFirstExecution));
  runtime_->expect(release_by(kMain));
  runtime_->expect(release_by(kMain));
  runtime_->start_main(main_, [this, copy = both]() mutable {
    auto one = shared("one");
    auto two = shared("two");
    copy.reset();
    one.reset();
    two.reset();
  });
  runtime_->on_strand([&] {
    runtime_->execute(execution_, Where::inline_,
                      [copy = std::move(both)]() mutable { copy.reset(); });
  });
  EXPECT_TRUE(take(kFirstExecution));
  EXPECT_TRUE(take(kMain));
  EXPECT_TRUE(take(kMain));
  EXPECT_EQ(released_, (std::vector<std::string>{"both", "one", "two"}));
}

TEST_F(ReplayRuntimeTest, WhatNobodyPostsIsMissed) {
  runtime_->expect(release_by(kMain));
  runtime_->start_main(main_, [] {});
  EXPECT_FALSE(take(kMain));
}

}  // namespace
}  // namespace rehearsal::sim
