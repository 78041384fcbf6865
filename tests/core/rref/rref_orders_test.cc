#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/core/rref/rref_fixture.h"

namespace rehearsal {
namespace {

// Enumerates every sequence of choices of a body that asks for them, one run for each.
class Choices {
 public:
  // A number below `count`, which is what the body may do next.
  size_t below(size_t count) {
    if (depth_ == path_.size()) path_.push_back({0, count});
    EXPECT_EQ(path_[depth_].count, count) << "the body is not deterministic";
    return path_[depth_++].taken;
  }
  // The next run; false when all have been made.
  bool next() {
    depth_ = 0;
    while (!path_.empty() && path_.back().taken + 1 == path_.back().count) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }
  [[nodiscard]] std::string describe() const {
    std::string text;
    for (const Choice& choice : path_) text += " " + std::to_string(choice.taken);
    return text;
  }

 private:
  struct Choice {
    size_t taken;
    size_t count;
  };
  std::vector<Choice> path_;
  size_t depth_ = 0;
};

// One cluster of one run; the test's fixture without its assertions on what is in flight.
class OrderedRun : public RRefFixture {
 public:
  void TestBody() override {}
  using RRefFixture::a;
  using RRefFixture::b;
  using RRefFixture::begin;
  using RRefFixture::c;
  using RRefFixture::check_invariants;
  using RRefFixture::deliver_all;
  using RRefFixture::expect_nothing_left;
  using RRefFixture::network;
  using RRefFixture::stage_;
  using RRefFixture::world;
};

// A step besides deliveries: it happens once, in every place of the order.
using Step = std::function<void(OrderedRun&)>;

// Runs `start`, then deliveries and steps in every order, and asserts the invariants after each;
// at the end all handles are dropped and nothing may be left. Returns the number of orders.
uint64_t explore(const Step& start, const std::vector<Step>& steps, const Step& at_end) {
  Choices choices;
  uint64_t orders = 0;
  do {
    OrderedRun run;
    run.begin();
    start(run);
    std::vector<const Step*> left;
    for (const Step& step : steps) left.push_back(&step);
    while (!run.network.in_flight().empty() || !left.empty()) {
      const size_t deliveries = run.network.in_flight().size();
      const size_t choice = choices.below(deliveries + left.size());
      if (choice < deliveries) {
        run.network.deliver(choice);
      } else {
        (*left[choice - deliveries])(run);
        left.erase(left.begin() + static_cast<ptrdiff_t>(choice - deliveries));
      }
      run.world.settle();
      run.check_invariants();
    }
    at_end(run);
    run.stage_.kept.clear();
    run.deliver_all();
    run.expect_nothing_left();
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "in the order" << choices.describe();
      break;
    }
    ++orders;
  } while (choices.next());
  return orders;
}

void nothing(OrderedRun&) {}

TEST(RRefOrders, CreateForkAndDropInEveryOrder) {
  // a creates at b, gives a fork to c, and drops its own handle at any time.
  std::optional<RRef<Counter>> rref;
  const uint64_t orders = explore(
      [&](OrderedRun& run) {
        rref = run.a().calls.remote<Counter>("b", 5);
        (void)run.a().calls.rpc_async("c", &keep, *rref);
      },
      {[&](OrderedRun&) { rref.reset(); }},
      [](OrderedRun& run) {
        EXPECT_EQ(run.stage_.kept["c"].size(), 1u);
        EXPECT_EQ(run.b().rrefs.owner_count(), 1u);
        EXPECT_EQ(run.b().rrefs.fork_count(), 1u);
        EXPECT_EQ(run.stage_.alive, 1);
      });
  EXPECT_GT(orders, 30u);
}

TEST(RRefOrders, CreateForkUseAndDropInEveryOrder) {
  // Beside the fork a adds to the counter, and drops its handle at once: the use holds it.
  std::optional<Future<int64_t>> sum;
  const uint64_t orders = explore(
      [&](OrderedRun& run) {
        const RRef<Counter> rref = run.a().calls.remote<Counter>("b", 5);
        (void)run.a().calls.rpc_async("c", &keep, rref);
        sum = rref.rpc_async(&Counter::add, 2);
      },
      {}, [&](OrderedRun&) { EXPECT_EQ(sum->wait(), 7); });
  EXPECT_GT(orders, 300u);
  sum.reset();
}

TEST(RRefOrders, AForkOfAForkInEveryOrder) {
  // a's fork at c is passed on to the owner b, by c's own code, as soon as c has it.
  const uint64_t orders = explore(
      [](OrderedRun& run) {
        const RRef<Counter> rref = run.b().calls.remote<Counter>("a", 5);
        (void)run.b().calls.rpc_async("c", &keep, rref);
      },
      {[](OrderedRun& run) {
        for (const RRef<Counter>& rref : run.stage_.kept["c"])
          (void)run.c().calls.rpc_async("a", &keep, rref);
        run.stage_.kept.erase("c");
      }},
      nothing);
  EXPECT_GT(orders, 300u);
}

TEST(RRefOrders, AResultWithAReferenceInEveryOrder) {
  // b keeps a reference to a value at c; a asks for it and drops what it gets.
  std::optional<Future<RRef<Counter>>> given;
  const uint64_t orders = explore(
      [&](OrderedRun& run) {
        run.stage_.kept["b"].push_back(run.b().calls.remote<Counter>("c", 5));
        given = run.a().calls.rpc_async("b", &give);
      },
      {[](OrderedRun& run) { (void)run.b().calls.rpc_async("b", &forget); }},
      [&](OrderedRun&) {
        const Result<RRef<Counter>> result = given->result();
        EXPECT_TRUE(result.ok() || result.error().kind == ErrorKind::remote_exception);
        given.reset();
      });
  EXPECT_GT(orders, 100u);
}

TEST(RRefOrders, TheOwnerFencesTheCreatorInEveryPlace) {
  // b gives a up at any time: nothing is left anywhere but what c could confirm.
  const uint64_t orders = explore(
      [](OrderedRun& run) {
        const RRef<Counter> rref = run.a().calls.remote<Counter>("b", 5);
        (void)run.a().calls.rpc_async("c", &keep, rref);
      },
      {[](OrderedRun& run) { run.b().fence(0); }}, nothing);
  EXPECT_GT(orders, 100u);
}

TEST(RRefOrders, TheHolderFencesTheOwnerInEveryPlace) {
  const uint64_t orders = explore(
      [](OrderedRun& run) {
        const RRef<Counter> rref = run.a().calls.remote<Counter>("b", 5);
        (void)run.a().calls.rpc_async("c", &keep, rref);
      },
      {[](OrderedRun& run) { run.c().fence(1); }}, nothing);
  EXPECT_GT(orders, 100u);
}

TEST(RRefOrders, TheSenderFencesTheReceiverInEveryPlace) {
  const uint64_t orders = explore(
      [](OrderedRun& run) {
        const RRef<Counter> rref = run.a().calls.remote<Counter>("b", 5);
        (void)run.a().calls.rpc_async("c", &keep, rref);
      },
      {[](OrderedRun& run) { run.a().fence(2); }}, nothing);
  EXPECT_GT(orders, 100u);
}

}  // namespace
}  // namespace rehearsal
