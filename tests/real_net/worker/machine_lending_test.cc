// Goal: workers of two processes of one machine lend to each other exactly if each device reaches
// the memory of all; a ticket maps what was lent while it is read, and nothing else. Method: a
// driver of the test's own, which maps memory of this process, and places that name another one.
#include "real_net/worker/machine_lending.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <set>

namespace rehearsal::real::machine_lending_test {
namespace {

constexpr WorkerId kPeer{1};
constexpr uint64_t kAllocation = 1024;  // bytes

// Each address is an allocation of its own.
class TestDriver final : public IpcMemory {
 public:
  Result<IpcPlace> share(const void* address, c10::Device) override {
    if (shares_nothing) return wrong_arguments("it cannot");
    const auto begin = reinterpret_cast<uint64_t>(address) - offset;
    std::string handle(reinterpret_cast<const char*>(&begin), sizeof begin);
    shared.insert(handle);
    return IpcPlace{.handle = handle, .offset = offset};
  }
  Result<IpcMapping> map(const std::string& handle, c10::Device device) override {
    if (!shared.contains(handle)) return wrong_arguments("there is no such allocation");
    if (unreached.contains(device.index())) return wrong_arguments("it is not reached");
    ++maps;
    ++mapped;
    uint64_t begin = 0;
    std::memcpy(&begin, handle.data(), sizeof begin);
    return IpcMapping{.begin = {reinterpret_cast<void*>(begin), [this](void*) { --mapped; }},
                      .bytes = kAllocation};
  }

  bool shares_nothing = false;
  uint64_t offset = 0;
  std::set<c10::DeviceIndex> unreached;
  std::set<std::string> shared;
  int maps = 0, mapped = 0;
};

// The same machine's, of another process.
std::string of_other_process(const std::string& place) {
  return "process 1-2" + place.substr(std::min(place.find('/'), place.size()));
}

class MachineLendingTest : public ::testing::Test {
 protected:
  std::shared_ptr<MachineLending> lending(std::shared_ptr<IpcMemory> with,
                                          DevicesHere devices = {.type = c10::kCPU, .count = 1}) {
    return std::make_shared<MachineLending>(std::move(with), devices, 8);
  }
  // As seen from another process.
  static std::string place_of(const MachineLending& worker) {
    return of_other_process(worker.place());
  }
  Result<at::Tensor> borrow(const std::string& ticket, c10::IntArrayRef sizes = {3}) {
    return borrower->borrow(ticket, sizes, c10::kFloat, c10::Device(c10::kCPU, 0));
  }
  std::string error_of(const std::string& ticket, c10::IntArrayRef sizes = {3}) {
    const Result<at::Tensor> borrowed = borrow(ticket, sizes);
    return borrowed.ok() ? "" : borrowed.error().text;
  }
  Lent lent_to_peer() {
    lender->meet(kPeer, place_of(*borrower));
    EXPECT_TRUE(lender->lends(kPeer, tensor.nbytes()));
    return lender->lend(kPeer, tensor).value();
  }

  const std::shared_ptr<TestDriver> driver = std::make_shared<TestDriver>();
  const std::shared_ptr<MachineLending> lender = lending(driver), borrower = lending(driver);
  const at::Tensor tensor = at::ones({3});
};

TEST_F(MachineLendingTest, IsBetweenProcessesOfOneMachineThatReachEachOther) {
  EXPECT_FALSE(lender->lends(kPeer, 100));  // They have not met.
  lender->meet(kPeer, place_of(*borrower));
  EXPECT_TRUE(lender->lends(kPeer, 100));
  EXPECT_FALSE(lender->lends(kPeer, 7));
  EXPECT_EQ(driver->mapped, 0);  // The trial is over.
  lender->meet(kPeer, "");
  EXPECT_FALSE(lender->lends(kPeer, 100));
}

TEST_F(MachineLendingTest, TriesOnceForEachMeeting) {
  lender->meet(kPeer, place_of(*borrower));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(lender->lends(kPeer, 100));
  EXPECT_EQ(driver->maps, 1);
  driver->unreached = {0};
  EXPECT_TRUE(lender->lends(kPeer, 100));
  lender->meet(kPeer, place_of(*borrower));  // Its next life.
  EXPECT_FALSE(lender->lends(kPeer, 100));
  driver->unreached.clear();
  EXPECT_FALSE(lender->lends(kPeer, 100));
}

TEST_F(MachineLendingTest, IsNotWhereOneDeviceReachesOneOtherNot) {
  const auto of_two = lending(driver, {.type = c10::kMeta, .count = 2});
  of_two->meet(kPeer, place_of(*borrower));
  EXPECT_TRUE(of_two->lends(kPeer, 100));
  driver->unreached = {1};
  of_two->meet(kPeer, place_of(*borrower));
  EXPECT_FALSE(of_two->lends(kPeer, 100));
}

TEST_F(MachineLendingTest, IsNotWithAnotherMachineOrADriverThatSharesNothing) {
  const std::string place = place_of(*borrower);
  const size_t machine = place.find('/') + 1;
  lender->meet(kPeer, std::string(place).insert(machine, "x"));
  EXPECT_FALSE(lender->lends(kPeer, 100));
  driver->shares_nothing = true;
  const auto unshared = lending(driver);
  EXPECT_EQ(unshared->place(), ProcessLending().place());
  unshared->meet(kPeer, place);
  EXPECT_FALSE(unshared->lends(kPeer, 100));
  lender->meet(kPeer, place_of(*unshared));
  EXPECT_FALSE(lender->lends(kPeer, 100));
}

TEST_F(MachineLendingTest, WithinAProcessNothingIsMapped) {
  for (const auto& worker : {borrower, lending(nullptr)}) {
    lender->meet(kPeer, worker->place());
    ASSERT_TRUE(lender->lends(kPeer, 100));
    const Lent lent = lender->lend(kPeer, tensor).value();
    const Result<at::Tensor> borrowed =
        worker->borrow(lent.ticket, {3}, c10::kFloat, c10::Device(c10::kCPU, 0));
    EXPECT_TRUE(borrowed.ok() && borrowed.value().is_same(tensor));
    EXPECT_TRUE(lender->end(lent.loan).is_same(tensor));
  }
  EXPECT_EQ(driver->maps, 0);
}

TEST_F(MachineLendingTest, WhatIsBorrowedIsMappedWhileItIsRead) {
  driver->offset = 64;
  const Lent first = lent_to_peer(), second = lent_to_peer();
  driver->maps = 0;
  {
    const at::Tensor one = borrow(first.ticket).or_throw(), two = borrow(second.ticket).or_throw();
    for (const at::Tensor& borrowed : {one, two}) {
      EXPECT_EQ(borrowed.const_data_ptr(), tensor.const_data_ptr());
      EXPECT_EQ(borrowed.sizes(), tensor.sizes());
      EXPECT_EQ(borrowed.scalar_type(), tensor.scalar_type());
    }
    EXPECT_EQ(driver->maps, 1);  // It is one allocation.
    EXPECT_EQ(driver->mapped, 1);
  }
  EXPECT_EQ(driver->mapped, 0);
  EXPECT_TRUE(borrow(first.ticket).ok());
  EXPECT_EQ(driver->maps, 2);
  EXPECT_TRUE(lender->end(first.loan).is_same(tensor));
  EXPECT_TRUE(lender->end(second.loan).is_same(tensor));
}

TEST_F(MachineLendingTest, NothingBesideAnAllocationCanBeRead) {
  const std::string ticket = lent_to_peer().ticket;
  const auto with_offset = [&](uint64_t offset) {
    return ticket.substr(0, 1) + std::string(reinterpret_cast<const char*>(&offset), 8) +
           ticket.substr(9);
  };
  constexpr auto kWrong = "the loan is of another size";
  EXPECT_EQ(error_of(ticket, {kAllocation / 4}), "");
  EXPECT_EQ(error_of(ticket, {kAllocation / 4 + 1}), kWrong);
  EXPECT_EQ(error_of(with_offset(kAllocation - 16), {4}), "");
  EXPECT_EQ(error_of(with_offset(kAllocation - 16), {5}), kWrong);
  EXPECT_EQ(error_of(with_offset(UINT64_MAX - 15), {4}), kWrong);
  EXPECT_EQ(error_of(with_offset(8), {1}), kWrong);  // A device could fail by it.
  EXPECT_EQ(error_of(ticket + "x"), "there is no such allocation");
  EXPECT_EQ(error_of("m"), "there is no such loan");
  EXPECT_EQ(error_of(""), "there is no such loan");
  EXPECT_EQ(
      lending(nullptr)->borrow(ticket, {3}, c10::kFloat, c10::Device(c10::kCPU, 0)).error().text,
      "this process cannot map memory of others");
}

TEST_F(MachineLendingTest, MemoryThatCannotBeSharedGoesByTheHost) {
  lender->meet(kPeer, place_of(*borrower));
  ASSERT_TRUE(lender->lends(kPeer, 100));
  driver->shares_nothing = true;
  EXPECT_FALSE(lender->lend(kPeer, tensor));
}

TEST_F(MachineLendingTest, PlacesThatNobodyWouldSayAreNoPlaces) {
  const std::string whole = place_of(*borrower);
  for (const std::string& place :
       {whole + "x", whole + "/", whole + "/zz", whole.substr(0, whole.size() - 2),
        whole.substr(0, whole.rfind('/')), std::string("/"), std::string("//"),
        std::string(10'000, '/')}) {
    lender->meet(kPeer, place);
    EXPECT_FALSE(lender->lends(kPeer, 100)) << place.substr(0, 200);
  }
}

}  // namespace
}  // namespace rehearsal::real::machine_lending_test
