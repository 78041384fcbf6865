#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/unique_function.h"
#include "core/calls/mailboxes.h"
#include "core/collectives/group_carrier.h"
#include "core/collectives/membership.h"

namespace rehearsal {

// One operation of a process group at one member, as the stack that executes it sees it: what it
// gives to other members and gets from them. Its functions throw RpcError when the group has
// failed.
class Operation {
 public:
  using Membership = ProcessGroup::Membership;

  // An operation before it begins.
  struct Plan {
    std::string_view function;  // lives for ever: "all_reduce"
    std::string text;           // the same at all members: "all_reduce(sum) of Float[2, 3]"
    bool between_two = false;
    uint64_t number = 0;           // see ParcelSlot
    uint64_t step = 0;             // added to all steps
    std::optional<uint64_t> turn;  // of what is carried: so many were before
  };
  // Executes it: gives, gets, calls `finish`, and then writes results. Parks.
  using Body = UniqueFunction<void(Operation&)>;

  // Begins it, on a stack of its own. The error of the future names the operation. Never parks.
  [[nodiscard]] static Future<Unit> start(const std::shared_ptr<Membership>& group, Plan plan,
                                          Body body);

  Operation(std::shared_ptr<Membership> group, const Plan& plan, uint64_t number)
      : group_(std::move(group)), plan_(plan), number_(number) {}

  [[nodiscard]] uint32_t rank() const { return group_->rank; }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(group_->workers.size()); }

  // Gives tensors to another member; they stay as they are until `finish`. Each step of this
  // operation gives a receiver one parcel. Never parks.
  void send(uint32_t to, uint64_t step, std::vector<at::Tensor> tensors);
  // The tensors that another member gives in that step: as many tensors as `like`, of the same
  // forms. Parks.
  [[nodiscard]] std::vector<at::Tensor> receive(uint32_t from, uint64_t step,
                                                const std::vector<at::Tensor>& like);
  // Has the carrier do it, in this operation's turn, and hands the turn on once it has begun; the
  // opening keeps it, until `pass_turn`. If the carrier fails, the error is that of the member that
  // is lost, if one is, with the carrier's as its cause. Parks.
  void carry(CarriedOperation operation);
  void pass_turn();
  // All that was given was taken: it may be changed from now on. Parks.
  void finish();

 private:
  struct Starting;

  static void fail_with(Execution& user, Membership& group);
  [[nodiscard]] static Mailboxes::Beginning beginning_of(
      const std::shared_ptr<Starting>& starting, const std::shared_ptr<uint64_t>& operation);
  // Runs the body, and completes `promise` with how it ended.
  void execute(Body& body, const Promise<Unit>& promise);
  // Ends the group, here and at the others, and completes `promise`. Parks.
  void fail(const Error& why, const Promise<Unit>& promise);
  // The carrier has failed with this error: finds out whether a member is lost. Parks.
  [[noreturn]] void find_cause(const Error& why);
  void wait(const std::function<void(const WaitHandle&, Mailboxes::Outcome&)>& arrange,
            Mailboxes::Outcome& outcome);

  const std::shared_ptr<Membership> group_;
  const Plan& plan_;
  const uint64_t number_;
  std::string cause_;  // why the carrier has failed, if it has
};

// "Float[2, 3]"
[[nodiscard]] std::string shape_text(const at::Tensor& tensor);

// The functions by which members reach each other.
void register_parcels(FunctionRegistry& registry);

}  // namespace rehearsal
