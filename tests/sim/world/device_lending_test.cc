// Goal: simulated devices of one place read each other's memory by a ticket, in the drawn order of
// their streams, and a loan that ends too early is told.
#include "sim/world/device_lending.h"

#include <memory>
#include <vector>

#include "tests/sim/device/devices.h"

namespace rehearsal::sim::device_lending_test {
namespace {

constexpr WorkerId kPeer{1};

// With choices of zero the devices go on only as far as they are waited for.
class DeviceLendingTest : public ::testing::Test {
 protected:
  std::shared_ptr<SimulatedLending> lending_at(const std::string& place) {
    return std::make_shared<SimulatedLending>(book, devices.machine().shared_from_this(), place);
  }
  static torch::Tensor on_device() { return torch::full({3}, 2).to(sim_device()); }
  static Result<torch::Tensor> borrow(SimulatedLending& lending, const std::string& ticket) {
    return lending.borrow(ticket, {3}, torch::kLong, sim_device());
  }

  SimulatedDevices devices{{.choose = [](const std::string&, uint32_t) { return 0u; }}};
  const std::shared_ptr<LoanBook> book = std::make_shared<LoanBook>();
  const std::shared_ptr<SimulatedLending> lender = lending_at("here"),
                                          borrower = lending_at("here");
};

TEST_F(DeviceLendingTest, IsBetweenWorkersOfOnePlace) {
  EXPECT_FALSE(lender->lends(kPeer, 1));
  lender->meet(kPeer, "there");
  EXPECT_FALSE(lender->lends(kPeer, 1));
  lender->meet(kPeer, "here");
  EXPECT_TRUE(lender->lends(kPeer, 1));
}

TEST_F(DeviceLendingTest, WhatIsBorrowedIsReadWhenItsStreamGoesOn) {
  const torch::Tensor tensor = on_device();
  current_stream().synchronize();
  const Lent lent = lender->lend(kPeer, tensor).value();
  torch::Tensor elements = borrow(*borrower, lent.ticket).or_throw();
  const torch::Tensor copy = torch::empty({3}, tensor.options());
  copy.copy_(elements, /*non_blocking=*/true);
  current_stream().synchronize();
  elements.reset();
  EXPECT_TRUE(lender->end(lent.loan).is_same(tensor));
  EXPECT_EQ(copy.sum().item<int64_t>(), 6);
  EXPECT_EQ(problems_of(devices), "");
}

TEST_F(DeviceLendingTest, ALoanThatEndsBeforeItIsCopiedIsTold) {
  const torch::Tensor tensor = on_device();
  current_stream().synchronize();
  const Lent lent = lender->lend(kPeer, tensor).value();
  const torch::Tensor copy = torch::empty({3}, tensor.options());
  copy.copy_(borrow(*borrower, lent.ticket).or_throw(), /*non_blocking=*/true);
  (void)lender->end(lent.loan);
  EXPECT_NE(problems_of(devices).find("loan 1 ends although its borrower may still read"),
            std::string::npos);
}

TEST_F(DeviceLendingTest, WhatIsNotLentCannotBeBorrowed) {
  const Lent lent = lender->lend(kPeer, on_device()).value();
  for (const std::string& ticket : {"0", "2", "x", ""})
    EXPECT_EQ(borrow(*borrower, ticket).error().text, "there is no such loan") << ticket;
  constexpr auto kWrong = "the loan is of another size or type";
  EXPECT_EQ(borrower->borrow(lent.ticket, {4}, torch::kLong, sim_device()).error().text, kWrong);
  EXPECT_EQ(borrower->borrow(lent.ticket, {3}, torch::kInt, sim_device()).error().text, kWrong);
  (void)lender->end(lent.loan);
  EXPECT_FALSE(borrow(*borrower, lent.ticket).ok());
  EXPECT_FALSE(lender->end(lent.loan).defined());
}

}  // namespace
}  // namespace rehearsal::sim::device_lending_test
