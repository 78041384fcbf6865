#include "real_net/rendezvous.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <optional>

namespace rehearsal::real {
namespace {

using Members = Result<std::vector<MemberRecord>>;
using std::chrono::milliseconds;
using std::chrono::seconds;

uint16_t free_port() {
  return local_address(listen_on({.host = "127.0.0.1", .port = 0}).or_throw()).port;
}

const std::vector<std::string> kNames = {"ps", "trainer0", "trainer1"};

RendezvousOptions options(uint16_t port, uint32_t rank, Duration timeout = seconds(20)) {
  RendezvousOptions made;
  made.placement.rank = rank;
  made.placement.master = {.host = "127.0.0.1", .port = port};
  made.names = kNames;
  made.self = {.name = kNames[rank],
               .address = {.host = "127.0.0.1", .port = static_cast<uint16_t>(1000 + rank)},
               .incarnation = {100 + rank},
               .world_size = 3};
  made.timeout = timeout;
  return made;
}

// Joins in a thread of its own; the rendezvous lives until all have joined.
class Joining {
 public:
  explicit Joining(const RendezvousOptions& made)
      : rendezvous_(std::make_unique<Rendezvous>(made)),
        result_(std::async(std::launch::async, [this] { return rendezvous_->join(); })) {}
  Members get() { return result_.get(); }

 private:
  std::unique_ptr<Rendezvous> rendezvous_;
  std::future<Members> result_;
};

void expect_all_met(std::vector<std::unique_ptr<Joining>>& joining) {
  for (const auto& one : joining) {
    const Members members = one->get();
    ASSERT_TRUE(members.ok()) << members.error().text;
    ASSERT_EQ(members.value().size(), 3u);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(members.value()[rank].name, kNames[rank]);
      EXPECT_EQ(members.value()[rank].address.port, 1000 + rank);
      EXPECT_EQ(members.value()[rank].incarnation.value, 100 + rank);
    }
  }
}

TEST(Rendezvous, AllWorkersLearnOfAll) {
  const uint16_t port = free_port();
  std::vector<std::unique_ptr<Joining>> joining;
  for (const uint32_t rank : {2u, 0u, 1u})
    joining.push_back(std::make_unique<Joining>(options(port, rank)));
  expect_all_met(joining);
}

TEST(Rendezvous, AStoreServedByTheLauncherServesSeveralGroups) {
  // Goal: nobody serves, and a group that starts anew does not meet the records of the first.
  // Method: the store of an outer group of one plays the launcher's.
  const uint16_t port = free_port();
  RendezvousOptions agent = options(port, 0);
  agent.names = {"agent"};
  agent.self.name = "agent";
  agent.self.world_size = 1;
  agent.placement.run = "agent";
  Rendezvous launcher(agent);
  ASSERT_TRUE(launcher.join().ok());
  for (int group = 0; group < 2; ++group) {
    std::vector<std::unique_ptr<Joining>> joining;
    for (const uint32_t rank : {0u, 1u, 2u}) {
      RendezvousOptions made = options(port, rank);
      made.placement.agent_serves = true;
      made.placement.run = "job/0";
      joining.push_back(std::make_unique<Joining>(made));
    }
    expect_all_met(joining);
  }
}

TEST(Rendezvous, AFileServesToo) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("rendezvous_test_" + std::to_string(getpid()));
  std::filesystem::remove(path);
  std::vector<std::unique_ptr<Joining>> joining;
  for (const uint32_t rank : {0u, 1u, 2u}) {
    RendezvousOptions made = options(0, rank);
    made.placement.file = path;
    joining.push_back(std::make_unique<Joining>(made));
  }
  expect_all_met(joining);
  std::filesystem::remove(path);
}

TEST(Rendezvous, MissingRanksAreNamedEverywhereInTime) {
  const uint16_t port = free_port();
  Joining first(options(port, 0, milliseconds(500)));
  Joining second(options(port, 1, seconds(20)));
  for (const Members& members : {first.get(), second.get()}) {
    ASSERT_FALSE(members.ok());
    EXPECT_NE(members.error().text.find("missing: rank 2 ('trainer1')"), std::string::npos)
        << members.error().text;
  }
}

TEST(Rendezvous, ARankGivenTwiceIsNamedEverywhere) {
  const uint16_t port = free_port();
  Joining first(options(port, 0));
  Joining second(options(port, 1));
  Joining third(options(port, 1));
  for (const Members& members : {first.get(), second.get(), third.get()}) {
    ASSERT_FALSE(members.ok());
    EXPECT_NE(members.error().text.find("two workers were started as rank 1 ('trainer0')"),
              std::string::npos)
        << members.error().text;
  }
}

TEST(Rendezvous, WorkersOfAnotherProgramAreNamed) {
  const uint16_t port = free_port();
  RendezvousOptions other = options(port, 1);
  other.self.name = "evaluator";
  Joining first(options(port, 0));
  Joining second(other);
  Joining third(options(port, 2));
  const Members members = first.get();
  ASSERT_FALSE(members.ok());
  EXPECT_NE(members.error().text.find("evaluator"), std::string::npos) << members.error().text;
  (void)second.get();
  (void)third.get();
}

TEST(Rendezvous, APortInUseIsAnErrorThatSaysSo) {
  const FileDescriptor taken = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  Rendezvous rendezvous(options(local_address(taken).port, 0));
  const Members members = rendezvous.join();
  ASSERT_FALSE(members.ok());
  EXPECT_NE(members.error().text.find("in use"), std::string::npos) << members.error().text;
}

TEST(Rendezvous, NobodyThereIsAnErrorInTime) {
  Rendezvous rendezvous(options(free_port(), 1, milliseconds(300)));
  const Members members = rendezvous.join();
  ASSERT_FALSE(members.ok());
  EXPECT_EQ(members.error().kind, ErrorKind::timeout);
  EXPECT_NE(members.error().text.find("nobody serves the rendezvous"), std::string::npos)
      << members.error().text;
}

}  // namespace
}  // namespace rehearsal::real
