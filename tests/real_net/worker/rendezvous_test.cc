#include "real_net/worker/rendezvous.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <limits>
#include <optional>

#include "core/base/ids.h"
#include "real_net/worker/group_card.h"
#include "real_net/worker/meeting_store.h"
#include "tests/leased_port.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::vector<std::string> kThree = {"ps", "trainer0", "trainer1"};

RendezvousOptions rendezvous_options(uint16_t port, uint32_t rank, Duration timeout = seconds(60)) {
  RendezvousOptions made;
  made.placement.rank = rank;
  made.placement.master = {.host = "127.0.0.1", .port = port};
  made.names = kThree;
  made.timeout = timeout;
  return made;
}

MemberRecord record_of(const RendezvousOptions& made, uint16_t port_base = 1000) {
  const uint32_t rank = made.placement.rank;
  return {.name = made.names.at(rank),
          .address = {.host = "127.0.0.1", .port = static_cast<uint16_t>(port_base + rank)},
          .incarnation = {uint64_t{port_base} + rank},
          .world_size = static_cast<uint32_t>(made.names.size())};
}

// Enters and meets in a thread of its own; the rendezvous lives as long as this does.
class Joining {
 public:
  explicit Joining(const RendezvousOptions& made) : Joining(made, record_of(made)) {}
  Joining(const RendezvousOptions& made, const MemberRecord& self)
      : rendezvous_(std::make_unique<Rendezvous>(made)),
        result_(std::async(std::launch::async, [this, self]() -> Result<Members> {
          const Result<uint32_t> life = rendezvous_->enter();
          if (!life.ok()) return life.error();
          life_ = life.value();
          return rendezvous_->meet(self);
        })) {}
  Result<Members> get() { return result_.get(); }
  // After `get`.
  uint32_t life() const { return life_; }
  Rendezvous& rendezvous() { return *rendezvous_; }

 private:
  uint32_t life_ = 0;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::future<Result<Members>> result_;
};

void expect_all_met(std::vector<std::unique_ptr<Joining>>& joining) {
  for (const auto& one : joining) {
    const Result<Members> members = one->get();
    ASSERT_TRUE(members.ok()) << members.error().text;
    EXPECT_EQ(one->life(), 0u);
    ASSERT_EQ(members.value().size(), 3u);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(members.value()[rank].has_value());
      EXPECT_EQ(members.value()[rank]->name, kThree[rank]);
      EXPECT_EQ(members.value()[rank]->address.port, 1000 + rank);
      EXPECT_EQ(members.value()[rank]->incarnation.value, 1000 + rank);
    }
  }
}

TEST(Rendezvous, AllWorkersLearnOfAll) {
  const uint16_t port = leased_port();
  std::vector<std::unique_ptr<Joining>> joining;
  for (const uint32_t rank : {2u, 0u, 1u})
    joining.push_back(std::make_unique<Joining>(rendezvous_options(port, rank)));
  expect_all_met(joining);
}

TEST(Rendezvous, AStoreServedByTheLauncherServesSeveralGroups) {
  // Goal: nobody serves, and a group that starts anew does not meet the records of the first.
  // Method: the store of an outer group of one plays the launcher's.
  const uint16_t port = leased_port();
  RendezvousOptions agent = rendezvous_options(port, 0);
  agent.names = {"agent"};
  agent.placement.run = "agent";
  Joining launcher(agent);
  ASSERT_TRUE(launcher.get().ok());
  for (int group = 0; group < 2; ++group) {
    std::vector<std::unique_ptr<Joining>> joining;
    for (const uint32_t rank : {0u, 1u, 2u}) {
      RendezvousOptions made = rendezvous_options(port, rank);
      made.placement.agent_serves = true;
      made.placement.run = "job/0";
      joining.push_back(std::make_unique<Joining>(made));
    }
    expect_all_met(joining);
    // All of them say so, and no two groups end.
    for (auto& one : joining) one->rendezvous().leave(true);
  }
}

TEST(Rendezvous, AFileServesToo) {
  const TemporaryFolder folder;
  std::vector<std::unique_ptr<Joining>> joining;
  for (const uint32_t rank : {0u, 1u, 2u}) {
    RendezvousOptions made = rendezvous_options(0, rank);
    made.placement.file = folder.file("store");
    joining.push_back(std::make_unique<Joining>(made));
  }
  expect_all_met(joining);
}

TEST(Rendezvous, MissingRanksAreNamedEverywhereInTime) {
  const uint16_t port = leased_port();
  Joining first(rendezvous_options(port, 0, seconds(3)));
  Joining second(rendezvous_options(port, 1));
  for (const Result<Members>& members : {first.get(), second.get()}) {
    ASSERT_FALSE(members.ok());
    EXPECT_NE(members.error().text.find("missing: rank 2 ('trainer1')"), std::string::npos)
        << members.error().text;
  }
}

TEST(Rendezvous, WorkersOfAnotherProgramAreNamed) {
  const uint16_t port = leased_port();
  MemberRecord other = record_of(rendezvous_options(port, 1));
  other.name = "evaluator";
  Joining first(rendezvous_options(port, 0));
  Joining second(rendezvous_options(port, 1), other);
  Joining third(rendezvous_options(port, 2));
  const Result<Members> members = first.get();
  ASSERT_FALSE(members.ok());
  EXPECT_NE(members.error().text.find("evaluator"), std::string::npos) << members.error().text;
  (void)second.get();
  (void)third.get();
}

// A store of the test's own, in which it may write what it likes; rank 0 never comes.
std::unique_ptr<MeetingStore> open_store(uint16_t port, const std::vector<std::string>& names) {
  Patience patience(seconds(60), seconds(60), nullptr);
  auto store =
      MeetingStore::open(rendezvous_options(port, 0).placement, names, Seal(Auth{}), patience)
          .or_throw();
  store->announce(encode(GroupCard{.names = names}));
  return store;
}

TEST(Rendezvous, ACounterThatSomebodyElseWroteKeepsNobodyBeyondItsTime) {
  // Goal: a number in the store, which no seal covers, is no loop of its length. Method: the count
  // of those that were refused is near the end of all numbers; nobody was.
  const uint16_t port = leased_port();
  const auto store = open_store(port, kThree);
  store->add("group0/refusals", std::numeric_limits<int64_t>::max());
  store->add("group0/news", 1);
  Joining joining(rendezvous_options(port, 1, seconds(3)));
  const Result<Members> members = joining.get();
  ASSERT_FALSE(members.ok());
  EXPECT_EQ(members.error().kind, ErrorKind::timeout);
  EXPECT_EQ(members.error().text,
            "not all workers came within 3 s to 127.0.0.1:" + std::to_string(port) +
                "; missing: rank 0 ('ps'), rank 2 ('trainer1')");
}

TEST(Rendezvous, ACounterOfLivesThatCannotBeIsNamed) {
  // Goal: a worker does not begin a life that the others take for a lie. Method: somebody else has
  // counted for it: one more than can be, so much that it is negative in the end, or as much as may
  // be.
  for (const int64_t count :
       {int64_t{kLivesMax}, int64_t{1} << 29, int64_t{1} << 40, int64_t{-3}}) {
    const uint16_t port = leased_port();
    const auto store = open_store(port, kThree);
    store->add("group0/claims/1", count);
    Joining joining(rendezvous_options(port, 1));
    Joining other(rendezvous_options(port, 2));
    const Result<Members> members = joining.get();
    ASSERT_FALSE(members.ok());
    EXPECT_EQ(members.error().kind, ErrorKind::bad_arguments);
    EXPECT_EQ(
        members.error().text,
        "the store at 127.0.0.1:" + std::to_string(port) + " says that rank 1 ('trainer0') " +
            "came " + std::to_string(count) + " times before (its counter " +
            "group0/claims/1), which cannot be: somebody else has written there. Give this " +
            "group a rendezvous or a run id of its own (MASTER_PORT, --rendezvous, --run-id)");
    const Result<Members> told = other.get();
    ASSERT_FALSE(told.ok());
    EXPECT_EQ(told.error().text, members.error().text) << "it would wait in vain";
  }
  const uint16_t port = leased_port();
  const auto store = open_store(port, {"ps"});
  store->add("group0/claims/0", kLivesMax - 1);
  RendezvousOptions alone = rendezvous_options(port, 0);
  alone.names = {"ps"};
  alone.placement.agent_serves = true;
  Joining last(alone);
  EXPECT_TRUE(last.get().ok());
  EXPECT_EQ(last.life(), kLivesMax - 1);
}

TEST(Rendezvous, APortInUseIsAnErrorThatSaysSo) {
  const FileDescriptor taken = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  Rendezvous rendezvous(rendezvous_options(local_address(taken).port, 0));
  const Result<uint32_t> members = rendezvous.enter();
  ASSERT_FALSE(members.ok());
  EXPECT_NE(members.error().text.find("in use"), std::string::npos) << members.error().text;
}

TEST(Rendezvous, NobodyThereIsAnErrorInTime) {
  Rendezvous rendezvous(rendezvous_options(leased_port(), 1, milliseconds(300)));
  const Result<uint32_t> members = rendezvous.enter();
  ASSERT_FALSE(members.ok());
  EXPECT_EQ(members.error().kind, ErrorKind::timeout);
  EXPECT_NE(members.error().text.find("nobody serves the rendezvous"), std::string::npos)
      << members.error().text;
}

TEST(Rendezvous, AListeningSocketMayBeHandedOnToWhoeverServes) {
  // Goal: no port has to be free by the time rank 0 comes. Method: two groups, one after the other,
  // at a socket that the test keeps open.
  const FileDescriptor socket = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  const uint16_t port = local_address(socket).port;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Joining>> joining;
    for (const uint32_t rank : {2u, 0u, 1u}) {
      RendezvousOptions made = rendezvous_options(port, rank);
      if (rank == 0) made.placement.listening = socket.get();
      joining.push_back(std::make_unique<Joining>(made));
    }
    expect_all_met(joining);
  }
}

TEST(Rendezvous, WhatDoesNotListenIsRefusedAsTheSocketOfTheRendezvous) {
  RendezvousOptions made = rendezvous_options(leased_port(), 0);
  made.placement.listening = STDERR_FILENO;
  Rendezvous rendezvous(made);
  EXPECT_EQ(rendezvous.enter().error().text,
            "rank 0 cannot serve the rendezvous: descriptor 2, which it was given, is no socket "
            "that listens");
}

}  // namespace
}  // namespace rehearsal::real
