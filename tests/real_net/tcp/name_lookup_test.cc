// Goal: however long a resolver takes, the strand goes on, and so does whoever needs no name.
#include "real_net/tcp/name_lookup.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/real_net/support/tcp_world.h"

namespace rehearsal::real {
namespace {

// A resolver that answers when it is let go on.
struct SlowResolver {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);

  [[nodiscard]] NameLookup::Resolve resolve() const {
    return [gone = gone, asked = asked](const Address& address) -> Result<Addresses> {
      ++*asked;
      gone.wait();
      if (address.host == "nowhere") return Error{.kind = ErrorKind::peer_lost, .text = "unknown"};
      return Addresses{{"10.0.0.7", 1}, {"fd00::7", 1}};
    };
  }
};

TEST(NameLookup, ASlowResolverHoldsNobodyUp) {
  SlowResolver slow;
  RealRuntime runtime({.worker_threads = 1});
  std::optional<NameLookup> lookup;
  std::vector<std::string> found;
  const auto note = [&](const std::string& who) {
    return [&found, who](const Result<Addresses>& result) {
      std::string text = result.ok() ? "" : " " + result.error().text;
      if (result.ok())
        for (const Address& one : result.value()) text += " " + to_string(one);
      found.push_back(who + text);
    };
  };
  run_on(runtime, [&] {
    lookup.emplace(runtime, slow.resolve());
    lookup->find({0}, {"gpu3", 7000}, note("a"));
    lookup->find({1}, {"gpu3", 7001}, note("b"));
    lookup->find({2}, {"nowhere", 1}, note("c"));
    lookup->find({3}, {"127.0.0.1", 5}, note("d"));
    lookup->find({4}, {"::1", 6}, note("e"));
  });
  EXPECT_EQ(found, (std::vector<std::string>{"d 127.0.0.1:5", "e [::1]:6"}));
  slow.go.set_value();
  EXPECT_TRUE(wait_until(runtime, [&] {
    size_t count = 0;
    run_on(runtime, [&] { count = found.size(); });
    return count == 5;
  }));
  run_on(runtime, [&] {
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, (std::vector<std::string>{"a 10.0.0.7:7000 [fd00::7]:7000",
                                               "b 10.0.0.7:7001 [fd00::7]:7001", "c unknown",
                                               "d 127.0.0.1:5", "e [::1]:6"}));
    EXPECT_EQ(*slow.asked, 2) << "one thread for a name";
    lookup.reset();
  });
  runtime.stop();
}

TEST(NameLookup, NamesWithoutEndAreRefusedAndNothingIsToldWhenItHasGone) {
  SlowResolver slow;
  RealRuntime runtime({.worker_threads = 1});
  int refused = 0, told = 0;
  run_on(runtime, [&] {
    NameLookup lookup(runtime, slow.resolve());
    for (uint32_t i = 0; i < 100; ++i)
      lookup.find({i}, {"host" + std::to_string(i), 1}, [&](const Result<Addresses>& result) {
        ++(!result.ok() && result.error().kind == ErrorKind::overloaded ? refused : told);
      });
  });
  EXPECT_EQ(refused, 84);
  slow.go.set_value();
  EXPECT_TRUE(wait_until(runtime, [&] { return *slow.asked == 16; }));
  run_on(runtime, [&] { EXPECT_EQ(told, 0); });
  runtime.stop();
}

TEST(NameLookup, APeerHasOneNameLookedUpAtATime) {
  // Goal: a peer that says another slow name again and again takes no look-up from the others.
  // Method: a hundred names of one, and then a name of another; the resolver answers in the end.
  SlowResolver slow;
  RealRuntime runtime({.worker_threads = 1});
  std::optional<NameLookup> lookup;
  std::vector<std::string> found;
  const auto note = [&](const std::string& who) {
    return [&found, who](const Result<Addresses>& result) {
      found.push_back(who + (result.ok() ? " found" : " " + result.error().text));
    };
  };
  run_on(runtime, [&] {
    lookup.emplace(runtime, slow.resolve());
    for (int i = 0; i < 100; ++i) {
      const std::string host = "host" + std::to_string(i);
      lookup->find({1}, {host, 1}, note(host));
    }
    lookup->find({2}, {"gpu3", 1}, note("gpu3"));
  });
  EXPECT_TRUE(wait_until(runtime, [&] { return *slow.asked == 2; }));
  run_on(runtime, [&] { EXPECT_EQ(found, std::vector<std::string>{}); });
  slow.go.set_value();
  EXPECT_TRUE(wait_until(runtime, [&] {
    size_t count = 0;
    run_on(runtime, [&] { count = found.size(); });
    return count == 3;
  }));
  run_on(runtime, [&] {
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, (std::vector<std::string>{"gpu3 found", "host0 found", "host99 found"}));
    EXPECT_EQ(*slow.asked, 3);
    lookup.reset();
  });
  runtime.stop();
}

}  // namespace
}  // namespace rehearsal::real
