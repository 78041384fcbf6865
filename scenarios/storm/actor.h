#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/worker.h"
#include "scenarios/storm/dice.h"
#include "scenarios/storm/functions.h"

namespace rehearsal::storm {

// A result that is not the sequential model's.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Whether the workers of this storm meet in the middle of it.
[[nodiscard]] bool workers_meet(Seed seed);

// Whether it is what an operation may fail with when a worker is lost.
[[nodiscard]] bool is_loss(ErrorKind kind);

// The work of one worker of a storm: operations drawn from the seed, each checked as it goes. An
// operation that fails because a worker is lost is counted and left.
class Actor {
 public:
  // `kept` outlives the main.
  // `recordable`: it reads nothing that a record of its worker does not hold.
  Actor(Worker& worker, Seed seed, std::vector<AutogradContext>& kept, bool recordable);

  // In a dynamic group, of which this worker is a member: whoever else is one can call it. Throws
  // WrongResult.
  void be_known();
  // The founder of a dynamic group waits until all others have come, if they do.
  void see_others_come();

  // From the beginning, or from the step that an earlier life of this worker has saved: one worker
  // in four saves the middle one. Throws WrongResult, or the RpcError of an operation for which no
  // worker was lost.
  void act(int64_t operations);

  // Of all results, in order. Equal in every schedule in which nobody is lost.
  [[nodiscard]] uint64_t digest() const { return digest_; }
  [[nodiscard]] int64_t lost_operations() const { return lost_; }

 private:
  // The name under which every worker publishes a counter of its rank.
  void publish_rank();
  // All workers meet in the middle of their work, or at least so many as are not lost.
  void meet_all();
  // Where an earlier life has left off, if it has saved that.
  [[nodiscard]] int64_t first_step(int64_t middle);
  void one_operation(Dice& dice);
  void call(Dice& dice);
  void call_many(Dice& dice);
  void call_failing(Dice& dice);
  void call_for_what_cannot_be_sent(WorkerId to, Dice& dice);
  void create_failing(Dice& dice);
  void call_operator(Dice& dice);
  void share(Dice& dice);
  void share_and_forget(Dice& dice);
  void create_in_haste(Dice& dice);
  void carry_around(Dice& dice);
  void let_wander(Dice& dice);
  void shelve(Dice& dice);
  void tie_shelves(Dice& dice);
  void update_slowly(Dice& dice);
  void update_from_elsewhere(Dice& dice);
  void move_blob(Dice& dice);
  void share_blob(Dice& dice);
  void let_go_of_blob(Dice& dice);
  void write_in_order(Dice& dice);
  void time_out(Dice& dice);
  void read_stream(Dice& dice);
  void read_stream_ahead(Dice& dice);
  void hold_for_a_while(Dice& dice);
  void leave_locked(Dice& dice);
  void let_a_lease_end(Dice& dice);
  void await_given(const RRef<Lock>& lock, const RRef<Counter>& life, WorkerId to);
  void add_to_batches(Dice& dice);
  void use_module(Dice& dice);
  void be_refused(Dice& dice);
  void call_script(Dice& dice);
  void send_parcel(Dice& dice);
  void take_first(Dice& dice);
  void give_up_rest(Dice& dice);
  void look_up_rank(Dice& dice);
  void publish_while_awaited(Dice& dice);
  void keep_account(Dice& dice);
  void record_little(Dice& dice);
  void propagate(Dice& dice);
  void propagate_in_part(Dice& dice);
  void propagate_again(Dice& dice);
  void propagate_beside(Dice& dice);
  void propagate_to_layers(Dice& dice);
  void propagate_in_time(Dice& dice);
  void train(Dice& dice);
  void train_with_what_cannot_be_made(Dice& dice);

  // ---- where there are devices ----
  void one_device_operation(Dice& dice);
  void change_in_place(Dice& dice);
  void lend_own_value(Dice& dice);
  void let_scale_later(Dice& dice);
  void fetch_from_afar(Dice& dice);
  void let_read_aside(Dice& dice);
  void add_to_device_batches(Dice& dice);
  void add_to_pools(Dice& dice);
  void bring_to_waiting(Dice& dice);
  void double_in_pools(Dice& dice);
  void propagate_beside_main(Dice& dice);
  void continue_beside(Dice& dice);
  void gather(Dice& dice);
  void expect_everywhere(const std::string& what, double expected, const at::Tensor& found);

  void expect_reading(const Journey& way, int64_t position, const std::optional<Reading>& reading);

  [[nodiscard]] WorkerId anybody(Dice& dice) const;
  [[nodiscard]] int64_t blob_size(Dice& dice) const;
  [[nodiscard]] Journey journey(Dice& dice, int64_t hops_max) const;
  // On a drawn device, if there are any.
  [[nodiscard]] at::Tensor somewhere(const at::Tensor& tensor);
  // A sum whose gradient for `x` is `expected` everywhere.
  struct Loss {
    at::Tensor x;
    at::Tensor sum;
    double expected = 0;
  };
  [[nodiscard]] Loss far_loss(const AutogradContext& context, Dice& dice, uint64_t calls_max);
  void add_branches(const AutogradContext& context, Dice& dice, Loss& loss);
  void expect_gradient(const AutogradContext& context, const Loss& loss);
  void expect(const std::string& what, int64_t expected, int64_t found);

  Worker& worker_;
  const Seed seed_;
  const size_t workers_;
  const uint64_t blob_scale_;           // what the seed makes of its large values
  std::vector<AutogradContext>& kept_;  // contexts that only the shutdown ends
  const bool recordable_;
  Dice places_{seed_, 0};  // of the present step's tensors
  uint64_t digest_ = 0;
  int64_t lost_ = 0;
};

}  // namespace rehearsal::storm
