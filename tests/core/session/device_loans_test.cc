// Goal: a loan ends once, when its borrower says so and not before; of a lost one it never ends;
// what is borrowed is given back once, when the devices have copied it.
#include "core/session/device_loans.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sim/simulated_devices.h"
#include "tests/core/recording_trace.h"
#include "tests/core/test_runtime.h"

namespace rehearsal::device_loans_test {
namespace {

constexpr WorkerId kPeer{1}, kOther{2};

// Knows only which loans have ended.
class CountingLending final : public DeviceLending {
 public:
  std::string place() const override { return "here"; }
  void meet(WorkerId, const std::string&) override {}
  bool lends(WorkerId, uint64_t) const override { return false; }
  std::optional<Lent> lend(WorkerId, const at::Tensor&) override { return std::nullopt; }
  at::Tensor end(LoanId loan) override {
    ended.push_back(loan);
    return {};
  }
  Result<at::Tensor> borrow(std::string_view, c10::IntArrayRef, c10::ScalarType,
                            c10::Device) override {
    return at::Tensor();
  }
  std::vector<LoanId> ended;
};

class DeviceLoansTest : public ::testing::Test {
 protected:
  DeviceLoansTest() { strand->set_lending(lending); }

  std::optional<Violation> take_back(WorkerId from, std::vector<LoanId> returned) {
    std::optional<Violation> violation;
    runtime->post([&] { violation = loans.take_back(from, {std::move(returned)}); });
    return violation;
  }
  void lose(WorkerId peer) {
    runtime->post([&] { loans.lose(peer); });
  }
  // A call that has come from the peer with one tensor that it has lent.
  std::shared_ptr<Borrowed> receive(LoanId loan) {
    auto borrowed = std::make_shared<Borrowed>(loan, "ticket");
    Message message{Call{}};
    std::get<Call>(message.content).arguments.on_devices().borrowed = {nullptr, borrowed};
    loans.receive(kPeer, message);
    return borrowed;
  }
  // All that is given back now, and to whom.
  std::vector<std::pair<WorkerId, std::vector<LoanId>>> given_back() {
    std::vector<std::pair<WorkerId, std::vector<LoanId>>> all;
    runtime->post([&] {
      for (const auto& [to, message] : loans.look())
        all.emplace_back(to, std::get<LoansReturned>(message.content).loans);
    });
    return all;
  }

  const std::shared_ptr<CountingLending> lending = std::make_shared<CountingLending>();
  const SessionOptions options{.self = {0}, .names = {"a", "b", "c"}};
  doubles::TestWorld world;
  doubles::RecordingTrace trace;
  const std::shared_ptr<doubles::TestRuntime> runtime =
      std::make_shared<doubles::TestRuntime>(world);
  const std::shared_ptr<NodeStrand> strand =
      std::make_shared<NodeStrand>(runtime, runtime.get(), &trace, options.self, "a", Seed{1});
  int looks_due = 0;
  DeviceLoans loans{options, *strand, [this] { ++looks_due; }};
};

TEST_F(DeviceLoansTest, ALoanEndsWhenItsBorrowerGivesItBack) {
  loans.leave(kPeer, {1, 2});
  EXPECT_EQ(loans.size(), 2u);
  EXPECT_FALSE(take_back(kPeer, {2}));
  EXPECT_EQ(lending->ended, (std::vector<LoanId>{2}));
  EXPECT_EQ(loans.size(), 1u);
}

TEST_F(DeviceLoansTest, NobodyElseCanEndIt) {
  loans.leave(kPeer, {1});
  EXPECT_TRUE(take_back(kOther, {1}));
  EXPECT_EQ(loans.size(), 1u);
  EXPECT_TRUE(lending->ended.empty());
}

TEST_F(DeviceLoansTest, ItEndsOnce) {
  loans.leave(kPeer, {1});
  EXPECT_FALSE(take_back(kPeer, {1}));
  EXPECT_TRUE(take_back(kPeer, {1}));
  EXPECT_EQ(lending->ended, (std::vector<LoanId>{1}));
}

TEST_F(DeviceLoansTest, OfALostWorkerItDoesNotEndForThatMayReadStill) {
  loans.leave(kPeer, {1});
  lose(kPeer);
  EXPECT_EQ(loans.size(), 0u);
  EXPECT_TRUE(lending->ended.empty());
  EXPECT_EQ(trace.marked("a worker is lost that had borrowed"), 1u);
  EXPECT_TRUE(take_back(kPeer, {1}));  // It is another life that says so.
}

TEST_F(DeviceLoansTest, NothingIsSaidOfALostWorkerThatHadBorrowedNothing) {
  lose(kPeer);
  EXPECT_EQ(trace.marked("a worker is lost that had borrowed"), 0u);
}

TEST_F(DeviceLoansTest, ALoanThatNobodyHasReadIsGivenBackWhenItsMessageDies) {
  auto borrowed = receive(7);
  EXPECT_FALSE(loans.waits());
  borrowed.reset();
  EXPECT_EQ(looks_due, 1);
  EXPECT_TRUE(loans.waits());
  EXPECT_EQ(given_back(), (decltype(given_back()){{kPeer, {7}}}));
  EXPECT_FALSE(loans.waits());
  EXPECT_TRUE(given_back().empty());
}

TEST_F(DeviceLoansTest, OneThatIsCopiedIsGivenBackOnceTheDeviceHasDoneSo) {
  // Each question lets a stream go one step on, nothing else does.
  sim::SimulatedDevices devices({.choose = [](const std::string&, uint32_t) { return 0u; }});
  at::Tensor elements = at::ones({3});
  const at::Tensor copy = elements.to(devices.here().at(0), /*non_blocking=*/true) * 2;
  auto borrowed = receive(7);
  borrowed->copied(elements, StreamSet::current(devices.here())->mark());
  const c10::weak_intrusive_ptr<c10::TensorImpl> alive(elements.getIntrusivePtr());
  elements.reset();
  EXPECT_TRUE(given_back().empty());
  EXPECT_FALSE(alive.expired());
  decltype(given_back()) given;
  for (int i = 0; i < 10 && loans.waits(); ++i) {
    const bool is_there = !alive.expired();
    given = given_back();
    if (is_there) EXPECT_TRUE(given.empty());  // The lender hears of it when nothing is left.
    world.settle();
  }
  EXPECT_EQ(given, (decltype(given){{kPeer, {7}}}));
  EXPECT_TRUE(alive.expired());
  borrowed.reset();  // It is not given back a second time.
  EXPECT_FALSE(loans.waits());
}

TEST_F(DeviceLoansTest, AllThatOneWorkerGetsBackIsOneMessage) {
  receive(9);
  receive(7);
  EXPECT_EQ(given_back(), (decltype(given_back()){{kPeer, {7, 9}}}));
}

TEST_F(DeviceLoansTest, NothingIsGivenBackToALaterLife) {
  auto borrowed = receive(7);
  lose(kPeer);
  borrowed.reset();
  EXPECT_TRUE(loans.waits());
  EXPECT_TRUE(given_back().empty());
  EXPECT_FALSE(loans.waits());
}

TEST_F(DeviceLoansTest, NothingIsGivenBackOnceItHasStopped) {
  loans.leave(kPeer, {1});
  receive(7);
  runtime->post([&] { loans.stop(); });
  EXPECT_FALSE(loans.waits());
  EXPECT_EQ(loans.size(), 0u);
  EXPECT_TRUE(lending->ended.empty());
}

}  // namespace
}  // namespace rehearsal::device_loans_test
