// Goal: workers of one process borrow what was lent to them by name of its ticket, and nothing
// else; what was not given back stays.
#include "real_net/worker/process_lending.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

namespace rehearsal::real::process_lending_test {
namespace {

constexpr WorkerId kPeer{1};
const c10::Device kDevice(c10::kCPU);

std::string error_of(const Result<at::Tensor>& borrowed) {
  return borrowed.ok() ? "" : borrowed.error().text;
}

class ProcessLendingTest : public ::testing::Test {
 protected:
  [[nodiscard]] Result<at::Tensor> borrow(const std::string& ticket) {
    return borrower.borrow(ticket, {3}, c10::kFloat, kDevice);
  }

  ProcessLending lender{100}, borrower{100};
  const at::Tensor tensor = at::ones({3});
};

TEST_F(ProcessLendingTest, OnlyWorkersOfThisProcessAndOnlyWhatIsLarge) {
  EXPECT_FALSE(lender.lends(kPeer, 1000));  // They have not met.
  lender.meet(kPeer, borrower.place());
  EXPECT_TRUE(lender.lends(kPeer, 100));
  EXPECT_FALSE(lender.lends(kPeer, 99));
  lender.meet(kPeer, borrower.place() + "0");  // It has come back elsewhere.
  EXPECT_FALSE(lender.lends(kPeer, 1000));
  lender.meet(kPeer, "");
  EXPECT_FALSE(lender.lends(kPeer, 1000));
}

TEST_F(ProcessLendingTest, ATicketGivesTheSameElementsUntilTheLoanEnds) {
  const Lent lent = lender.lend(kPeer, tensor).value();
  const Result<at::Tensor> borrowed = borrow(lent.ticket);
  ASSERT_TRUE(borrowed.ok()) << error_of(borrowed);
  EXPECT_EQ(borrowed.value().const_data_ptr(), tensor.const_data_ptr());
  EXPECT_TRUE(lender.end(lent.loan).is_same(tensor));
  EXPECT_EQ(error_of(borrow(lent.ticket)), "there is no such loan");
  EXPECT_FALSE(lender.end(lent.loan).defined());
}

TEST_F(ProcessLendingTest, StaysWhenItsLenderHasEnded) {
  Lent lent;
  {
    ProcessLending short_lived;
    lent = short_lived.lend(kPeer, tensor).value();
  }
  EXPECT_TRUE(borrow(lent.ticket).ok());
  (void)lender.end(lent.loan);
}

TEST_F(ProcessLendingTest, ATicketCannotBeGuessed) {
  const Lent first = lender.lend(kPeer, tensor).value(),
             second = lender.lend(kPeer, tensor).value();
  const std::string number = std::to_string(second.loan);
  ASSERT_TRUE(second.ticket.starts_with(number));
  // The number of one, with what makes the other's ticket a secret.
  const std::string forged = number + first.ticket.substr(std::to_string(first.loan).size());
  for (const std::string& wrong : {forged, number, second.ticket + " ", std::string(" "),
                                   std::string(), std::string("-1"), std::string(1000, '9')})
    EXPECT_EQ(error_of(borrow(wrong)), "there is no such loan") << wrong;
  (void)lender.end(first.loan);
  (void)lender.end(second.loan);
}

TEST_F(ProcessLendingTest, AnotherSizeOrTypeIsRefused) {
  const Lent lent = lender.lend(kPeer, tensor).value();
  constexpr auto kWrong = "the loan is of another size or type";
  EXPECT_EQ(error_of(borrower.borrow(lent.ticket, {4}, c10::kFloat, kDevice)), kWrong);
  EXPECT_EQ(error_of(borrower.borrow(lent.ticket, {1, 3}, c10::kFloat, kDevice)), kWrong);
  EXPECT_EQ(error_of(borrower.borrow(lent.ticket, {3}, c10::kInt, kDevice)), kWrong);
  (void)lender.end(lent.loan);
}

}  // namespace
}  // namespace rehearsal::real::process_lending_test
