// Goal: nobody waits in silence, in vain or for the wrong group. Method: workers at one store that
// do not fit, do not come, or find something else there.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <optional>

#include "real_net/worker/group_card.h"
#include "real_net/worker/meeting_store.h"
#include "real_net/worker/rendezvous.h"
#include "tests/leased_port.h"
#include "tests/real_net/support/fault_proxy.h"
#include "tests/real_net/support/nursery.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

const std::vector<std::string> kNames = {"ps", "trainer0", "trainer1"};

// One worker that comes to a store in a thread of its own, and the lines that it is told.
class Comer {
 public:
  Comer(uint16_t port, uint32_t rank, Duration timeout = seconds(60)) {
    options.placement.rank = rank;
    options.placement.master = {.host = "127.0.0.1", .port = port};
    options.names = kNames;
    options.timeout = timeout;
    options.first_word = milliseconds(20);
    options.tell = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
      told_.notify_all();
    };
  }

  void come() {
    rendezvous = std::make_unique<Rendezvous>(options);
    met_ = std::async(std::launch::async, [this]() -> Result<Members> {
      const Result<uint32_t> life = rendezvous->enter();
      if (!life.ok()) return life.error();
      life_ = life.value();
      const uint32_t rank = options.placement.rank;
      return rendezvous->meet({.name = options.names.at(rank),
                               .address = local_address(listening_),
                               .incarnation = {1000 + rank},
                               .world_size = static_cast<uint32_t>(options.names.size())});
    });
  }
  // Comes, and waits for the others: it has said so.
  void come_and_wait() {
    come();
    ASSERT_TRUE(hears("has waited ").has_value());
  }

  // The first line with these words, within a minute.
  std::optional<std::string> hears(const std::string& words, size_t from = 0) {
    std::unique_lock lock(mutex_);
    std::optional<std::string> found;
    told_.wait_for(lock, seconds(60), [&] {
      for (; from < lines_.size() && !found; ++from)
        if (lines_[from].find(words) != std::string::npos) found = lines_[from];
      return found.has_value();
    });
    return found;
  }

  Result<Members> met() { return met_.get(); }
  // Why it did not meet the others.
  Error refused() {
    const Result<Members> members = met_.get();
    EXPECT_FALSE(members.ok());
    return members.ok() ? Error{} : members.error();
  }
  uint32_t life() const { return life_; }
  Address address() const { return local_address(listening_); }

  RendezvousOptions options;
  std::unique_ptr<Rendezvous> rendezvous;

 private:
  // As a worker that waits has it: it takes connections, and says nothing.
  const FileDescriptor listening_ = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  uint32_t life_ = 0;
  std::mutex mutex_;
  std::condition_variable told_;
  std::vector<std::string> lines_;
  std::future<Result<Members>> met_;
};

void expect_words(const std::string& text, const std::vector<std::string>& all) {
  for (const std::string& words : all)
    EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: " << text;
}

// ---- waiting ----------------------------------------------------------------

TEST(Joining, AWorkerThatWaitsSaysForWhomAndEverMoreRarely) {
  // Method: rank 2 does not come; what the others are told names it.
  const uint16_t port = leased_port();
  Comer first(port, 0), second(port, 1);
  first.come();
  second.come();
  const std::string place = "127.0.0.1:" + std::to_string(port);
  for (Comer* comer : {&first, &second}) {
    const auto line = comer->hears(", for rank 2 ('trainer1') to come to " + place);
    ASSERT_TRUE(line.has_value());
    expect_words(*line, {"has waited ", "s, of 60 s at most"});
  }
  Comer third(port, 2);
  third.come();
  for (Comer* comer : {&first, &second, &third}) EXPECT_TRUE(comer->met().ok());
}

TEST(Joining, WordsOfWaitingComeAfterTwiceTheTimeAMinuteApartAtMost) {
  // Goal: a line now and then, not a flood. Method: patience that has begun, asked all the time.
  Patience patience(seconds(300), seconds(5), nullptr);
  const Clock::time_point begin = patience.deadline() - patience.limit();
  std::vector<seconds> words;
  for (seconds waited{0}; waited <= patience.limit(); waited += seconds(1))
    if (patience.word_at(begin + waited)) words.push_back(waited);
  EXPECT_EQ(words, (std::vector<seconds>{seconds(5), seconds(10), seconds(20), seconds(40),
                                         seconds(80), seconds(140), seconds(200), seconds(260)}));
}

TEST(Joining, AProgramThatTakesConnectionsAndSaysNothingIsToldInTime) {
  // Method: a port at which the system takes connections that nobody reads.
  const FileDescriptor silent = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  Comer comer(local_address(silent).port, 1, milliseconds(400));
  comer.come();
  const Error error = comer.refused();
  EXPECT_EQ(error.kind, ErrorKind::timeout);
  expect_words(error.text, {"the rendezvous at 127.0.0.1:", " does not answer: ",
                            "it takes connections and says nothing", "rank 0 ('ps') hangs"});
  EXPECT_TRUE(comer.hears("for rank 0 ('ps') to serve the rendezvous").has_value());
}

TEST(Joining, AnotherProgramAtThePortIsToldAtOnce) {
  // Method: it answers what a web server would.
  const FileDescriptor listening = listen_on({.host = "127.0.0.1", .port = 0}).or_throw();
  auto server = std::async(std::launch::async, [&] {
    const auto limit = Clock::now() + seconds(10);
    if (!wait_readable(listening.get(), limit)) return;
    const FileDescriptor client(accept(listening.get(), nullptr, nullptr));
    char bytes[64];
    if (!wait_readable(client.get(), limit) || read(client.get(), bytes, sizeof bytes) <= 0) return;
    EXPECT_GT(write(client.get(), "HTTP/1.1 400\r\n", 14), 0);
  });
  Comer comer(local_address(listening).port, 1);
  comer.come();
  const Error error = comer.refused();
  server.get();
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  expect_words(error.text, {"another program has the port", "it answers 'HTTP", "MASTER_PORT"});
}

TEST(Joining, AHostThatCannotBeFoundOrReachedIsNamedInTime) {
  // Method: a name that no resolver accepts, and an address to which nothing may connect.
  for (const auto& [host, words] :
       {std::pair{std::string(70, 'x'), "is not known"},
        std::pair{std::string("255.255.255.255"), "cannot connect to"}}) {
    Comer comer(29500, 1, milliseconds(300));
    comer.options.placement.master.host = host;
    comer.come();
    const Error error = comer.refused();
    EXPECT_EQ(error.kind, ErrorKind::timeout);
    expect_words(error.text, {"nobody serves the rendezvous at " + host + ":29500", words,
                              "is the address right?"});
    EXPECT_TRUE(comer.hears(words).has_value());
  }
}

TEST(Joining, AStoreThatFallsSilentLaterIsToldToo) {
  // Method: a proxy before the store stalls while rank 1 waits in it.
  const uint16_t port = leased_port();
  FaultProxy proxy(port);
  Comer first(port, 0, seconds(4)), second(proxy.port(), 1, seconds(3));
  first.come_and_wait();
  second.come_and_wait();
  proxy.set_stalled(true);
  const Error error = second.refused();
  EXPECT_EQ(error.kind, ErrorKind::peer_lost);
  expect_words(error.text, {"the rendezvous at 127.0.0.1:", "it does not answer",
                            "rank 0 ('ps'), which serves it, has ended or hangs"});
  EXPECT_TRUE(second.hears(", for an answer of the rendezvous").has_value());
  (void)first.refused();
  proxy.set_stalled(false);
}

TEST(Joining, AWorkerThatHasYetToJoinIsToldWhenRankZeroEndsWithItsStore) {
  // Method: all have met, and rank 0 goes before the others have linked up.
  const uint16_t port = leased_port();
  Comer group[] = {{port, 0}, {port, 1}, {port, 2}};
  for (Comer& comer : group) comer.come();
  for (Comer& comer : group) ASSERT_TRUE(comer.met().ok());
  std::promise<Error> over;
  group[1].rendezvous->follow({.joined = [] { return false; },
                               .moved = [](WorkerId, const Address&) {},
                               .over = [&](const Error& why) { over.set_value(why); }});
  group[0].rendezvous.reset();
  auto told = over.get_future();
  ASSERT_EQ(told.wait_for(seconds(20)), std::future_status::ready);
  const Error why = told.get();
  EXPECT_EQ(why.worker, "ps");
  expect_words(why.text, {"rank 0 ('ps'), which served the rendezvous at 127.0.0.1:",
                          "ended before this worker had joined"});
  group[1].rendezvous->stop_following();
}

TEST(Joining, WorkersThatWaitInTheStoreAreToldWhenTheProcessOfRankZeroIsKilled) {
  // Goal: who is left names rank 0, and does not wait until its time is up. Method: a process for
  // rank 0 and its store; a fourth worker never comes.
  const uint16_t port = leased_port();
  const auto names = [](Comer& comer) { comer.options.names.push_back("late"); };
  Nursery children([&](int) {
    Comer first(port, 0, std::chrono::hours(1));
    names(first);
    first.come();
    return first.met().ok() ? 0 : 1;
  });
  const pid_t first = children.start(0);
  Comer left[] = {{port, 1, std::chrono::hours(1)}, {port, 2, std::chrono::hours(1)}};
  for (Comer& comer : left) {
    names(comer);
    comer.come_and_wait();
  }
  EXPECT_EQ(children.kill(first), -SIGKILL);
  for (Comer& comer : left) {
    const Error error = comer.refused();
    EXPECT_EQ(error.kind, ErrorKind::peer_lost);
    expect_words(error.text, {"the rendezvous at 127.0.0.1:", "rank 0 ('ps'), which serve"});
  }
}

// ---- who does not fit -------------------------------------------------------

TEST(Joining, ASecondWorkerOfOneRankIsRefusedAndTheGroupFormsWithoutIt) {
  // Goal: a second launch at the same port does no harm. Method: rank 1 comes twice.
  const uint16_t port = leased_port();
  Comer first(port, 0), second(port, 1), again(port, 1), third(port, 2);
  first.come_and_wait();
  second.come_and_wait();
  again.options.self = {.host = "10.0.0.7", .port = 4711};
  again.come();
  const Error error = again.refused();
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  expect_words(error.text,
               {"two workers were started as rank 1 ('trainer0')",
                "the first one runs at " + to_string(second.address()),
                "the second one was started 20", ", at 10.0.0.7:4711", "waits for the others",
                "a static group of 3 workers ('ps', "
                "'trainer0', 'trainer1'), a run without an id",
                "MASTER_PORT"});
  for (Comer* comer : {&first, &second})
    EXPECT_TRUE(comer->hears("is told: a second rank 1 ('trainer0') came").has_value());
  third.come();
  for (Comer* comer : {&first, &second, &third}) EXPECT_TRUE(comer->met().ok());
}

TEST(Joining, AWorkerThatWentAwayWhileItsGroupFormedMayComeAgain) {
  // Method: rank 1 takes its place and is never heard of again; another one comes as rank 1.
  const uint16_t port = leased_port();
  Comer first(port, 0), gone(port, 1), again(port, 1), third(port, 2);
  first.come_and_wait();
  gone.rendezvous = std::make_unique<Rendezvous>(gone.options);
  EXPECT_TRUE(gone.rendezvous->enter().ok());
  again.come();
  third.come();
  for (Comer* comer : {&first, &again, &third}) EXPECT_TRUE(comer->met().ok());
}

TEST(Joining, AnOptionThatDiffersIsNamedOnBothSidesWithBothValues) {
  const uint16_t port = leased_port();
  Comer first(port, 0), second(port, 1);
  first.options.settings = {{"seed", "1"}, {"size", "tiny"}};
  second.options.settings = {{"seed", "1"}, {"size", "full"}};
  first.come_and_wait();
  second.come();
  const Error here = second.refused();
  EXPECT_EQ(here.kind, ErrorKind::bad_arguments);
  expect_words(here.text, {"size is 'full' here, 'tiny' there", "rank 1 ('trainer0')",
                           "by rank 0 ('ps'), process " + std::to_string(getpid())});
  const Error there = first.refused();
  EXPECT_EQ(there.kind, ErrorKind::peer_lost);
  expect_words(there.text,
               {"rank 1 ('trainer0') came and does not fit: size is 'tiny' here, 'full' there"});
}

TEST(Joining, AStaticAndADynamicGroupNoticeEachOtherAtOnce) {
  const uint16_t port = leased_port();
  Comer first(port, 0), second(port, 1);
  second.options.dynamic = true;
  first.come_and_wait();
  second.come();
  expect_words(second.refused().text, {"the group is dynamic here, static there"});
  expect_words(first.refused().text, {"rank 1 ('trainer0')", "the group is static here, dynamic"});
}

TEST(Joining, EveryDifferenceOfTwoProgramsHasItsWords) {
  // Method: cards that differ in one thing each, as they come back from their text.
  const GroupCard ours{.run = "a",
                       .names = {"ps", "trainer"},
                       .libtorch = "2.11.0",
                       .functions = "add () -> unit\n",
                       .settings = {{"rate", "1"}},
                       .begun = "now"};
  const auto with = [&](const std::function<void(GroupCard&)>& change) {
    GroupCard theirs = decode_card(encode(ours)).value();
    change(theirs);
    return difference(ours, theirs).value_or("fits");
  };
  EXPECT_EQ(with([](GroupCard& card) { card.run = card.begun = "b"; }), "fits");
  EXPECT_EQ(with([](GroupCard& card) { card.names[1] = "actor"; }),
            "rank 1 is named 'trainer' here, 'actor' there");
  EXPECT_EQ(with([](GroupCard& card) { card.names.push_back("actor"); }),
            "the program has 2 workers ('ps', 'trainer') here, 3 ('ps', 'trainer', 'actor') there");
  EXPECT_EQ(with([](GroupCard& card) { card.libtorch = "2.10.0"; }),
            "LibTorch is 2.11.0 here, 2.10.0 there");
  EXPECT_EQ(with([](GroupCard& card) { card.functions = "sub () -> unit\n"; }),
            "the registered functions differ: here add () -> unit, there sub () -> unit");
  EXPECT_EQ(with([](GroupCard& card) { card.settings.clear(); }),
            "rate is '1' here, not given there");
  EXPECT_EQ(with([](GroupCard& card) { card.settings["size"] = "tiny"; }),
            "size is not given here, 'tiny' there");
  for (const char* text : {"", "{}", "gone", "{\"run\":1}"})
    EXPECT_FALSE(decode_card(text).has_value()) << text;
}

TEST(Joining, LongSettingsAreComparedByTheirHashesAndTooManyAreRefused) {
  // Goal: what a program must agree on is bounded in the store, and still compared whole. Method:
  // values that differ in their last letter only.
  const std::string config(70'000'000, 'c');
  GroupCard ours{.settings = card_settings({{"config", config + "a"}, {"rate", "1"}}).value()};
  GroupCard theirs{.settings = card_settings({{"config", config + "b"}, {"rate", "1"}}).value()};
  EXPECT_EQ(ours.settings["rate"], "1");
  EXPECT_LT(encode(ours).size(), 1'000u);
  const std::string differ = difference(ours, theirs).value_or("fits");
  expect_words(differ, {"config is 'ccc", "… (70000001 bytes, hash "});
  EXPECT_EQ(difference(decode_card(encode(ours)).value(), ours), std::nullopt);
  // Bytes that are no text arrive as they were compared.
  ours.settings = card_settings({{"key", "\xff\n\x01"}}).value();
  EXPECT_EQ(difference(decode_card(encode(ours)).value(), ours), std::nullopt);
  std::map<std::string, std::string> many;
  for (int i = 0; i <= 1'000; ++i) many["setting" + std::to_string(i)] = "1";
  expect_words(card_settings(many).error().text, {"1001 settings; at most 1000"});
  for (const std::string& name : {std::string(), std::string(201, 'n'), std::string("two\nlines")})
    expect_words(card_settings({{name, "1"}}).error().text, {"a text of 1 to 200 bytes"});
}

TEST(Joining, AnotherRunAtThePortIsRefusedAndToldWhatRunsThere) {
  // Goal: run ids keep two launches apart. Method: a group that has formed, and one worker of
  // another launch for each of its places.
  const uint16_t port = leased_port();
  Comer group[] = {{port, 0}, {port, 1}, {port, 2}};
  for (Comer& comer : group) comer.options.placement.run = "a7";
  for (Comer& comer : group) comer.come();
  for (Comer& comer : group) ASSERT_TRUE(comer.met().ok());
  for (const uint32_t rank : {1u, 2u}) {
    Comer other(port, rank, milliseconds(1500));
    other.options.placement.run = "b8";
    other.come();
    const Error error = other.refused();
    EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
    expect_words(error.text,
                 {"is of another run than run 'b8' of this worker, rank " + std::to_string(rank),
                  "there is a static group of 3 workers ('ps', 'trainer0', 'trainer1'), run 'a7', "
                  "begun 20",
                  " by rank 0 ('ps'), process ", "known in it: 'ps', 'trainer0', 'trainer1'"});
  }
  Comer server(port, 0);
  server.options.placement.run = "b8";
  server.come();
  const Error error = server.refused();
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  expect_words(error.text, {"rank 0 cannot serve the rendezvous", "in use",
                            "there is a static group of 3 workers", "run 'a7'"});
}

TEST(Joining, AGroupThatHasEndedMakesWayForTheNextRun) {
  // Goal: two launches in a row need not wait between them. Method: rank 1 of the second comes
  // while the store of the first is still there.
  const uint16_t port = leased_port();
  Comer first(port, 0), second(port, 1);
  for (Comer* comer : {&first, &second}) {
    comer->options.names = {"ps", "trainer0"};
    comer->options.placement.run = "a7";
    comer->come();
  }
  for (Comer* comer : {&first, &second}) ASSERT_TRUE(comer->met().ok());
  for (Comer* comer : {&second, &first}) comer->rendezvous->leave(true);
  Comer next(port, 1), server(port, 0);
  for (Comer* comer : {&next, &server}) {
    comer->options.names = {"ps", "trainer0"};
    comer->options.placement.run = "b8";
  }
  next.come();
  ASSERT_TRUE(next.hears("for the group that met at 127.0.0.1:").has_value());
  first.rendezvous.reset();
  server.come();
  for (Comer* comer : {&next, &server}) EXPECT_TRUE(comer->met().ok());
}

// ---- who refuses ------------------------------------------------------------

TEST(Joining, AWorkerThatRefusesTellsThoseThatWaitAndThoseThatCome) {
  const uint16_t port = leased_port();
  Comer first(port, 0), second(port, 1), third(port, 2);
  first.come_and_wait();
  second.rendezvous = std::make_unique<Rendezvous>(second.options);
  second.rendezvous->refuse({.kind = ErrorKind::bad_arguments, .text = "no such option"});
  third.come();
  for (Comer* comer : {&first, &third})
    EXPECT_EQ(comer->refused().text, "rank 1 ('trainer0') refuses to join: no such option");
}

TEST(Joining, AReasonThatIsTooLongForTheStoreIsShortened) {
  const uint16_t port = leased_port();
  Comer first(port, 0), second(port, 1);
  first.come_and_wait();
  second.rendezvous = std::make_unique<Rendezvous>(second.options);
  second.rendezvous->refuse(
      {.kind = ErrorKind::bad_arguments, .text = std::string(70'000'000, 'x')});
  const std::string text = first.refused().text;
  EXPECT_TRUE(text.starts_with("rank 1 ('trainer0') refuses to join: xxx")) << text.substr(0, 200);
  EXPECT_NE(text.find(" bytes more"), std::string::npos);
  EXPECT_LT(text.size(), 100'000u);
}

TEST(Joining, TheWorkerThatServesTheStoreTellsThemToo) {
  // Method: rank 0 refuses, whichever comes first; it stays until the others know.
  const uint16_t port = leased_port();
  Comer first(port, 0), second(port, 1), third(port, 2);
  first.rendezvous = std::make_unique<Rendezvous>(first.options);
  second.come_and_wait();
  auto refusal = std::async(std::launch::async, [&] {
    first.rendezvous->refuse({.kind = ErrorKind::bad_arguments, .text = "no such option"},
                             seconds(60));
  });
  third.come();
  for (Comer* comer : {&second, &third})
    EXPECT_EQ(comer->refused().text, "rank 0 ('ps') refuses to join: no such option");
  refusal.get();
}

TEST(Joining, AStoreMayEndAsSoonAsItsReasonHasBeenRead) {
  // Method: the test serves a store and ends it the moment its reader says that it has read.
  for (int round = 0; round < 20; ++round) {
    Comer comer(leased_port(), 1);
    Placement server = comer.options.placement;
    server.rank = 0;
    Patience patience(seconds(60), seconds(60), nullptr);
    auto store = MeetingStore::open(server, kNames, Seal(Auth{}), patience).or_throw();
    store->announce(encode(GroupCard{.names = kNames}));
    store->set("group0/failure", "the reason");
    comer.come();
    while (store->add("group0/read", 0) == 0) std::this_thread::yield();
    store.reset();
    ASSERT_EQ(comer.refused().text, "the reason");
  }
}

TEST(Joining, AWorkerThatRefusesDoesNotHarmAGroupThatHasItsPlaceTaken) {
  const uint16_t port = leased_port();
  Comer first(port, 0), second(port, 1), again(port, 1), third(port, 2);
  first.come_and_wait();
  second.come_and_wait();
  again.rendezvous = std::make_unique<Rendezvous>(again.options);
  again.rendezvous->refuse({.kind = ErrorKind::bad_arguments, .text = "no such option"});
  EXPECT_TRUE(first.hears("rank 1 ('trainer0') refuses to join: no such option").has_value());
  third.come();
  for (Comer* comer : {&first, &second, &third}) EXPECT_TRUE(comer->met().ok());
}

}  // namespace
}  // namespace rehearsal::real
