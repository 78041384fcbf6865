// Goal: a worker that restarts is the worker come back, over the network, too. Method: the store of
// a group, with workers that come, crash and come again.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <mutex>

#include "real_net/worker/rendezvous.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;

const std::vector<std::string> kGroup = {"ps", "trainer0", "trainer1"};

MemberRecord record_of(uint32_t rank, uint16_t port) {
  return {.name = kGroup[rank],
          .address = {.host = "127.0.0.1", .port = port},
          .incarnation = {port},
          .world_size = 3};
}

class Return : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Rendezvous> rendezvous(uint32_t rank, bool dynamic = false) const {
    RendezvousOptions made;
    made.placement.rank = rank;
    made.placement.file = file_;
    made.names = kGroup;
    made.timeout = std::chrono::seconds(20);
    made.dynamic = dynamic;
    return std::make_unique<Rendezvous>(made);
  }

  // One life: enters, and meets those who are there.
  struct Life {
    std::unique_ptr<Rendezvous> rendezvous;
    uint32_t number = 0;
    Members met;
  };
  Life live(uint32_t rank, uint16_t port, bool dynamic = false) {
    Life life{rendezvous(rank, dynamic), 0, {}};
    life.number = life.rendezvous->enter().or_throw();
    life.met = life.rendezvous->meet(record_of(rank, port)).or_throw();
    return life;
  }

  // All of a group that forms.
  std::vector<Life> form(uint16_t first_port) {
    std::vector<std::future<Life>> coming;
    for (uint32_t rank = 0; rank < 3; ++rank)
      coming.push_back(std::async(std::launch::async, [this, rank, first_port] {
        return live(rank, static_cast<uint16_t>(first_port + rank));
      }));
    std::vector<Life> lives;
    for (auto& one : coming) lives.push_back(one.get());
    return lives;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("store");
};

// The events that a follower was told.
class Told {
 public:
  RendezvousListener listener() {
    return {.joined = [this] { return joined_.load(); },
            .moved =
                [this](WorkerId peer, const Address& address) {
                  const std::lock_guard lock(mutex_);
                  moves_.push_back(std::to_string(peer.value) + " " + to_string(address));
                  news_.notify_all();
                },
            .over =
                [this](const Error& why) {
                  const std::lock_guard lock(mutex_);
                  over_ = why.text;
                  news_.notify_all();
                }};
  }
  void set_joined() { joined_ = true; }
  std::vector<std::string> moves(size_t count) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, std::chrono::seconds(20), [&] { return moves_.size() >= count; });
    return moves_;
  }
  std::string over() {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, std::chrono::seconds(20), [&] { return !over_.empty(); });
    return over_;
  }

 private:
  std::atomic<bool> joined_{false};
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::string> moves_;
  std::string over_;
};

TEST_F(Return, AWorkerOfAGroupThatHasFormedComesBackInItsNextLifeAndWaitsForNobody) {
  std::vector<Life> group = form(1000);
  for (const Life& life : group) EXPECT_EQ(life.number, 0u);
  for (uint32_t number = 1; number <= 3; ++number) {
    const Life back = live(2, static_cast<uint16_t>(2000 + number));
    EXPECT_EQ(back.number, number);
    ASSERT_TRUE(back.met[0] && back.met[1]);
    EXPECT_EQ(back.met[0]->address.port, 1000);
    EXPECT_EQ(back.met[1]->address.port, 1001);
  }
  // A worker that comes later finds where worker 2 was last.
  const Life other = live(1, 3001);
  EXPECT_EQ(other.number, 1u);
  EXPECT_EQ(other.met[2]->address.port, 2003);
}

TEST_F(Return, AGroupThatHasEndedWellIsFollowedByAnotherWithoutItsRecordsAndLives) {
  std::vector<Life> group = form(1000);
  (void)live(2, 2002);
  for (Life& life : group) life.rendezvous->leave(true);
  const std::vector<Life> next = form(3000);
  for (const Life& life : next) {
    EXPECT_EQ(life.number, 0u);
    for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(life.met[rank]->address.port, 3000 + rank);
  }
}

TEST_F(Return, AGroupOfWhichNobodyAnswersMakesWayForAnotherProgram) {
  // Goal: the remains of a crashed group block nobody. Method: none of its addresses answers.
  (void)form(1000);
  const Life founder = live(0, 2000, /*dynamic=*/true);
  EXPECT_EQ(founder.number, 0u);
  EXPECT_FALSE(founder.met[1] || founder.met[2]);
}

TEST_F(Return, AWorkerThatLeavesAloneEndsNoStaticGroup) {
  std::vector<Life> group = form(1000);
  group[2].rendezvous->leave(/*with_all=*/false);
  EXPECT_EQ(live(2, 2002).number, 1u);
}

TEST_F(Return, AWorkerThatComesBackFollowsTheOthersThatDo) {
  // Goal: all workers of a group that failed start again and find one another, whoever is first.
  Told told;
  std::vector<Life> group = form(1000);
  Life first = live(0, 2000);
  EXPECT_EQ(first.met[1]->address.port, 1001);
  first.rendezvous->follow(told.listener());
  Life second = live(1, 2001);
  EXPECT_EQ(second.met[0]->address.port, 2000);
  EXPECT_EQ(told.moves(1), (std::vector<std::string>{"1 127.0.0.1:2001"}));
  (void)live(2, 2002);
  EXPECT_EQ(told.moves(2), (std::vector<std::string>{"1 127.0.0.1:2001", "2 127.0.0.1:2002"}));
  told.set_joined();
  first.rendezvous->stop_following();
}

TEST_F(Return, AWorkerThatComesBackIsToldWhenItsGroupEnds) {
  Told told;
  std::vector<Life> group = form(1000);
  Life back = live(2, 2002);
  back.rendezvous->follow(told.listener());
  for (const uint32_t rank : {0u, 1u}) group[rank].rendezvous->leave(true);
  EXPECT_EQ(told.over(), "the group ended before this worker had come back to it");
}

TEST_F(Return, AWorkerThatCannotComeTellsTheOthersOfAGroupThatForms) {
  std::unique_ptr<Rendezvous> first = rendezvous(0);
  EXPECT_EQ(first->enter().or_throw(), 0u);
  auto met = std::async(std::launch::async, [&] { return first->meet(record_of(0, 1000)); });
  std::unique_ptr<Rendezvous> second = rendezvous(1);
  EXPECT_EQ(second->enter().or_throw(), 0u);
  second->give_up({.kind = ErrorKind::protocol, .text = "no port"});
  const Result<Members> members = met.get();
  ASSERT_FALSE(members.ok());
  EXPECT_EQ(members.error().text, "rank 1 ('trainer0') cannot join: no port");
}

TEST_F(Return, AGroupWhoseFormingHasFailedIsFollowedByTheNext) {
  // Goal: a store that goes on remembers the failure for those that have yet to hear of it, and
  // keeps nobody from coming again. Method: one cannot join; another one comes late; then all come
  // again, at once.
  std::unique_ptr<Rendezvous> first = rendezvous(0);
  EXPECT_EQ(first->enter().or_throw(), 0u);
  auto met = std::async(std::launch::async, [&] { return first->meet(record_of(0, 1000)); });
  std::unique_ptr<Rendezvous> second = rendezvous(1);
  EXPECT_EQ(second->enter().or_throw(), 0u);
  second->give_up({.kind = ErrorKind::protocol, .text = "no port"});
  EXPECT_FALSE(met.get().ok());
  std::unique_ptr<Rendezvous> late = rendezvous(2);
  const Result<uint32_t> told = late->enter();
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().text, "rank 1 ('trainer0') cannot join: no port");
  for (const Life& life : form(3000)) EXPECT_EQ(life.number, 0u);
}

TEST_F(Return, AWorkerThatRefusedToJoinMayJoinTheNextGroup) {
  // Goal: it was found unfit before it came, and is mended. Method: it comes again first, and the
  // others, whose group has failed because of it, after it.
  std::unique_ptr<Rendezvous> first = rendezvous(0);
  EXPECT_EQ(first->enter().or_throw(), 0u);
  auto met = std::async(std::launch::async, [&] { return first->meet(record_of(0, 1000)); });
  rendezvous(1)->refuse({.kind = ErrorKind::bad_arguments, .text = "no such option"});
  EXPECT_FALSE(met.get().ok());
  std::unique_ptr<Rendezvous> mended = rendezvous(1);
  EXPECT_EQ(mended->enter().or_throw(), 0u);
  auto met_again = std::async(std::launch::async, [&] { return mended->meet(record_of(1, 2001)); });
  auto again = std::async(std::launch::async, [this] { return live(0, 2000); });
  const Life last = live(2, 2002);
  EXPECT_EQ(last.number, 0u);
  EXPECT_TRUE(met_again.get().ok());
  EXPECT_EQ(again.get().number, 0u);
}

TEST_F(Return, AFounderThatComesAgainIsToldWhoIsThere) {
  // Goal: it founds the group once more when it has heard of these. Method: nobody answers at the
  // addresses of this test; its first life is told nothing, nor is any other worker.
  Life founder = live(0, 1000, true);
  EXPECT_FALSE(founder.rendezvous->founds_after().has_value());
  Life guest = live(1, 1001, true);
  EXPECT_FALSE(guest.rendezvous->founds_after().has_value());
  const Life again = live(0, 2000, true);
  EXPECT_EQ(again.number, 1u);
  ASSERT_TRUE(again.rendezvous->founds_after().has_value());
  EXPECT_TRUE(again.rendezvous->founds_after()->empty());
  EXPECT_FALSE(live(1, 2001, true).rendezvous->founds_after().has_value());
}

TEST_F(Return, WhoIsInADynamicGroupIsThereAtOnceAndGoneWhenItLeaves) {
  Told told;
  Life founder = live(0, 1000, /*dynamic=*/true);
  EXPECT_EQ(founder.number, 0u);
  EXPECT_FALSE(founder.met[1] || founder.met[2]);
  founder.rendezvous->follow(told.listener());
  Life second = live(2, 1002, true);
  EXPECT_EQ(second.met[0]->address.port, 1000);
  EXPECT_FALSE(second.met[1]);
  EXPECT_EQ(told.moves(1), (std::vector<std::string>{"2 127.0.0.1:1002"}));
  second.rendezvous->leave(true);
  Life third = live(1, 1001, true);
  EXPECT_EQ(third.met[0]->address.port, 1000);
  EXPECT_FALSE(third.met[2]) << "it has left";
  // It comes back, and is another.
  const Life again = live(2, 2002, true);
  EXPECT_EQ(again.number, 1u);
  EXPECT_EQ(told.moves(3).back(), "2 127.0.0.1:2002");
}

TEST_F(Return, ADynamicGroupThatNobodyIsInBeginsAnew) {
  // Goal: worker 0 founds the next one, in a first life. Method: all leave, and one that was not
  // there comes first; then it crashes alone; then it crashes beside another one.
  // The file lasts while somebody has it open.
  Life first = live(0, 1000, true);
  Life second = live(1, 1001, true);
  first.rendezvous->leave(true);
  EXPECT_EQ(live(0, 2000, true).number, 1u) << "one is left in it";
  live(0, 2001, true).rendezvous->leave(true);
  second.rendezvous->leave(true);
  Life third = live(2, 3002, true);
  EXPECT_EQ(third.number, 0u);
  Life founder = live(0, 3000, true);
  EXPECT_EQ(founder.number, 0u);
  for (Life* life : {&third, &founder}) life->rendezvous->leave(true);
  EXPECT_EQ(live(0, 4000, true).number, 0u);
  EXPECT_EQ(live(0, 4001, true).number, 0u);
  EXPECT_EQ(live(1, 4002, true).number, 0u);
  EXPECT_EQ(live(0, 4003, true).number, 1u);
}

}  // namespace
}  // namespace rehearsal::real
