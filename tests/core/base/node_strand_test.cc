#include "core/base/node_strand.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/base/monitor.h"
#include "tests/core/base/node_strand_fixture.h"

namespace rehearsal {
namespace {

using NodeStrandTest = NodeStrandFixture;

TEST_F(NodeStrandTest, AWaitLastsUntilItsHandleIsEnded) {
  // Park; a timer ends the wait a second later.
  const Status status = strand_->wait("a timer", {}, [&](WaitHandle handle) {
    EXPECT_TRUE(handle.lasts());
    runtime_->call_at(world_.now() + std::chrono::seconds(1), [handle] { handle.end(); });
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(world_.now(), Instant(std::chrono::seconds(1)));
  EXPECT_EQ(strand_->waits().size(), 0u);
}

TEST_F(NodeStrandTest, WhereNothingMayParkAWaitFailsAtOnce) {
  // On the strand and in an inline body; `arrange` is never called.
  std::optional<Status> status;
  const auto attempt = [&] {
    status.emplace(strand_->wait("an answer", {}, [](WaitHandle) { ADD_FAILURE(); }));
  };
  on_strand(attempt);
  EXPECT_EQ(status->error().kind, ErrorKind::would_park);
  EXPECT_NE(status->error().text.find("an answer"), std::string::npos);
  EXPECT_EQ(status->error().worker, "w");
  status.reset();
  on_strand([&] { strand_->run_continuation({}, attempt); });
  EXPECT_EQ(status->error().kind, ErrorKind::would_park);
}

TEST_F(NodeStrandTest, ClosingFailsWaitsAndLaterOnes) {
  runtime_->call_at(world_.now(), [&] { strand_->close(stopped()); });
  const Status first = strand_->wait("an answer", {}, [](WaitHandle) {});
  EXPECT_EQ(first.error(), stopped());
  const Status second = strand_->wait("more", {}, [](WaitHandle) { ADD_FAILURE(); });
  EXPECT_EQ(second.error(), stopped());
  EXPECT_TRUE(strand_->closed());
  EXPECT_FALSE(strand_->killed());
}

TEST_F(NodeStrandTest, WhoWaitsForAValueWhenItEndsIsCountedNoMore) {
  // One waits for a monitor that is left then, one for a monitor whose value is dropped.
  const auto left = std::make_shared<Monitor>();
  const auto dropped = std::make_shared<Monitor>();
  on_strand([&] {
    for (const auto& monitor : {left, dropped}) {
      monitor->enter([] {});
      strand_->run_on_stack({{}, "batch", monitor, 0}, [] { ADD_FAILURE() << "it ran"; });
    }
    EXPECT_EQ(strand_->continuations(), 2u);
    strand_->close(stopped());
    left->leave();
    dropped->give_up().clear();
    EXPECT_EQ(strand_->continuations(), 0u);
  });
  EXPECT_FALSE(left->held());
}

// Goal: when the node has ended, nobody enters a value because its method fails to wait.
TEST_F(NodeStrandTest, AWaitThatFailsAtOnceKeepsTheMonitor) {
  main_->monitor = std::make_shared<Monitor>();
  bool entered = false;
  on_strand([&] {
    main_->monitor->enter([] {});
    main_->monitor->enter([&] { entered = true; });
    strand_->close(stopped());
  });
  const Status status = strand_->wait("an answer", {}, [](WaitHandle) { ADD_FAILURE(); });
  EXPECT_EQ(status.error(), stopped());
  EXPECT_FALSE(entered);
  on_strand([&] { main_->monitor->leave(); });
  EXPECT_TRUE(entered);
}

TEST_F(NodeStrandTest, TheFirstReasonForClosingStays) {
  on_strand([&] {
    strand_->close(stopped());
    strand_->close({.text = "another"});
  });
  EXPECT_EQ(strand_->why_closed(), stopped());
}

TEST_F(NodeStrandTest, WhatIsPostedToAClosedMailboxIsDroppedAndMarked) {
  bool ran = false;
  bool always = false;
  auto alive = std::make_shared<int>(1);
  on_strand([&] { strand_->close(stopped()); });
  strand_->post([&ran, alive] { ran = true; });
  strand_->post_always([&always] { always = true; });
  EXPECT_FALSE(ran);
  EXPECT_TRUE(always);
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(trace_.marked("posted to a closed mailbox"), 1u);
}

TEST_F(NodeStrandTest, AKillUnwindsWaitsWithNodeKilledAndMarksNothing) {
  runtime_->call_at(world_.now(), [&] {
    strand_->kill();
    runtime_->kill();
  });
  EXPECT_THROW((void)strand_->wait("an answer", {}, [](WaitHandle) {}), NodeKilled);
  EXPECT_THROW((void)strand_->running(), NodeKilled);
  strand_->post([] { ADD_FAILURE(); });
  EXPECT_EQ(trace_.marked("posted to a closed mailbox"), 0u);
}

TEST_F(NodeStrandTest, AStrangersThreadIsToldToRegister) {
  runtime_->run_as(nullptr);
  EXPECT_EQ(strand_->running_or_null(), nullptr);
  EXPECT_THROW((void)strand_->running(), std::logic_error);
  runtime_->run_as(main_.get());
  EXPECT_EQ(&strand_->running(), main_.get());
}

TEST_F(NodeStrandTest, AStrangersThreadLearnsThatTheNodeHasEnded) {
  // Where it may park, and where it may not.
  on_strand([&] {
    strand_->close({.kind = ErrorKind::node_stopped, .text = "it has shut down", .worker = "a"});
  });
  runtime_->run_as(nullptr);
  const auto kind_of_use = [&] {
    try {
      (void)strand_->running();
    } catch (const RpcError& error) {
      return error.error().text;
    }
    return std::string("none");
  };
  EXPECT_EQ(kind_of_use(), "it has shut down");
  std::string inside;
  on_strand([&] { inside = kind_of_use(); });
  EXPECT_EQ(inside, "it has shut down");
  runtime_->run_as(main_.get());
}

TEST_F(NodeStrandTest, AContinuationIsAnExecutionOfItsOwn) {
  // It runs off the strand, numbers under its own path, is counted and traced.
  const CausalId id = main_->next_id();
  Hash128 path;
  on_strand([&] {
    strand_->run_continuation({.id = id}, [&] {
      EXPECT_FALSE(runtime_->on_strand());
      path = strand_->running().path();
      EXPECT_EQ(strand_->continuations(), 1u);
    });
    EXPECT_EQ(path, Hash128{});
  });
  EXPECT_EQ(path, id.execution_path());
  EXPECT_EQ(strand_->continuations(), 0u);
  EXPECT_EQ(trace_.count(EventKind::execution_started), 1u);
  EXPECT_EQ(trace_.count(EventKind::execution_ended), 1u);
}

TEST_F(NodeStrandTest, ReleasedValuesDieOffTheStrand) {
  bool died = false;
  on_strand([&] {
    strand_->release_later(std::shared_ptr<int>(new int(1), [&](int* value) {
      EXPECT_FALSE(runtime_->on_strand());
      died = true;
      delete value;
    }));
    EXPECT_FALSE(died);
    strand_->release_later(nullptr);
  });
  EXPECT_TRUE(died);
}

TEST_F(NodeStrandTest, NoTwoReleasesGiveTheirDestructorsTheSameIds) {
  std::vector<CausalId> made;
  const auto release = [&] {
    strand_->release_later(std::shared_ptr<int>(new int(1), [&](int* value) {
      made.push_back(strand_->running().next_id());
      delete value;
    }));
  };
  on_strand([&] {
    strand_->set_incarnation({9});
    release();
    release();
  });
  on_strand([&] {
    strand_->set_incarnation({10});
    release();
  });
  ASSERT_EQ(made.size(), 3u);
  EXPECT_NE(made[0], made[1]);
  EXPECT_NE(made[0].place(), made[2].place());
  EXPECT_NE(made[1].place(), made[2].place());
}

TEST_F(NodeStrandTest, OutlivesWhatItsNodeWasGiven) {
  // The trace is destroyed with the node; late handles still post, wait and ask who runs.
  auto trace = std::make_unique<doubles::RecordingTrace>();
  auto strand = std::make_shared<NodeStrand>(runtime_, runtime_.get(), trace.get(), WorkerId{0},
                                             "w", Seed{1});
  on_strand([&] {
    strand->close(stopped());
    strand->outlive_node();
  });
  trace.reset();
  strand->post([] { ADD_FAILURE(); });
  EXPECT_EQ(strand->wait("an answer", {}, [](WaitHandle) {}).error(), stopped());
  EXPECT_EQ(strand->running_or_null(), nullptr);
  try {
    (void)strand->running();
    FAIL();
  } catch (const RpcError& thrown) {
    EXPECT_EQ(thrown.error(), stopped());
  }
}

}  // namespace
}  // namespace rehearsal
