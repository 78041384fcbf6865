#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearsal {

// Whether mutants were compiled in (REHEARSAL_MUTANTS); not in a product.
#ifdef REHEARSAL_MUTANTS
inline constexpr bool kHasMutants = true;
#else
inline constexpr bool kHasMutants = false;
#endif

// Each leaves out one rule of the protocol, so that a test can show that the simulator finds its
// absence; mutants.cc says which. A mutant changes one place, at `if (mutants.on(Mutant::x))`.
enum class Mutant : uint8_t {
  // sessions
  no_deduplication,
  deduplication_slides,
  deduplication_forgotten,
  reset_is_final,
  room_wakes_nobody,
  no_back_pressure,
  no_fencing,
  fenced_side_not_told,
  destination_unchecked,
  position_not_told,
  backlog_in_one_burst,
  one_refusal_is_death,
  // calls
  calls_never_time_out,
  nested_calls_count,
  monitor_kept_while_parked,
  answered_calls_stay,
  answered_call_keeps_its_deadline,
  remote_error_not_stored,
  context_lost_in_async,
  unwanted_response_unread,
  forks_undone_at_timeout,
  uses_in_flight_hold_nothing,
  stream_without_credit,
  stream_ignores_order,
  stream_cancel_lost,
  cancel_not_nested,
  shield_dropped,
  order_not_kept,
  order_on_two_lanes,
  // references
  no_confirmation_gate,
  confirm_never_refuses,
  unknown_id_is_to_come,
  delete_before_answer,
  accept_on_adoption,
  refused_child_accepts_not,
  pins_survive_fencing,
  lost_owner_leaves_pending,
  lost_creator_refuses_nothing,
  owner_handles_keep_nothing,
  owner_fork_registered_late,
  creation_in_two_steps,
  creation_withdrawn,
  failed_creation_wakes_nobody,
  unsent_forks_stay,
  handle_released_in_place,
  values_end_in_place,
  received_references_stay,
  // autograd
  undefined_gradient_not_sent,
  undecided_ignored,
  mark_answered_at_once,
  later_marks_not_sent,
  pass_not_resumed,
  early_gradient_refused,
  committed_not_taken_back,
  backward_returns_early,
  backward_returns_before_commit,
  unused_result_hangs,
  failure_not_told,
  failure_told_upwards_only,
  forget_dead_epochs,
  release_overtakes_calls,
  holders_need_gradients,
  contexts_released_by_relays,
  lost_creator_keeps_contexts,
  execution_forgets_context,
  continuation_forgets_context,
  unrecorded_not_marked,
  // optimizers
  step_repeated_unasked,
  unanswered_step_counts,
  overtaken_order_obeyed,
  lost_options_count_as_sent,
  stale_gradient_stepped,
  missing_gradients_ignored,
  parameter_stepped_twice,
  failed_term_counts,
  sum_outlives_step,
  clip_norm_of_one_owner,
  unscaled_again,
  overflow_not_agreed,
  optimizer_never_released,
  constructor_error_swallowed,
  // shutdown
  leaves_when_empty,
  partial_barrier,
  shutdown_counts_own_calls_only,
  shutdown_skips_references,
  newcomers_not_told,
  shutdown_awaits_lost,
  shutdown_has_five_seconds,
  arrival_is_timed,
  acknowledgement_wakes_no_shutdown,
  // lives
  lives_share_paths,
  serves_before_met,
  // dynamic groups
  joins_by_one_member,
  leaver_is_asked_on,
  leaves_undrained,
  // names and states
  publication_wakes_nobody,
  state_made_late,
  // waits in primitives of the program's
  given_up_waits_stay,
  given_up_waits_begin,
  wake_lost_to_giving_up,
  timer_outlives_wait,
  // tensors on devices
  future_has_no_points,
  continuation_in_any_streams,
  method_in_own_streams,
  value_ahead_of_its_future,
  answer_ahead_of_its_future,
  answered_by_own_map,
  sent_before_it_is_copied,
  rest_sent_before_it_is_copied,
  ordered_call_overtakes_copies,
  loan_ends_when_it_leaves,
  loans_of_the_lost_end,
  returned_before_it_is_copied,
  local_value_read_early,
  local_value_in_other_streams,
  value_changed_while_it_is_read,
  state_in_other_streams,
  batch_ahead_of_its_items,
  batch_lets_its_items_go,
  pass_ahead_of_its_roots,
  walk_in_other_streams,
  walk_records_nothing,
  gradients_summed_elsewhere,
  gradients_settled_elsewhere,
  gradients_read_early,
  gradients_not_recorded,
  step_beside_other_uses,
  changed_gradients_read_early,
  // the limit of functions that execute at once
  continuation_forgets_depth,
  inline_calls_wait_their_turn,
  // gradients of several passes
  changed_gradients_not_kept,
  // acknowledgements
  acknowledgement_never_alone,
  changes_before_sending_count,
  replacement_not_awaited,
};

inline constexpr size_t kMutantsMax = 192;

// The condition for seeing the rule missing: an order of messages, a fault, or neither.
enum class MutantKind : uint8_t { ordering, fault, other };

struct MutantRow {
  Mutant mutant{};
  std::string_view name;
  MutantKind kind{};
  std::string_view wrong;  // what the mutant does, in words
};

// All of them, in the order of the enum; none in a build without.
[[nodiscard]] std::span<const MutantRow> mutant_table();
[[nodiscard]] std::vector<std::string> mutant_names();

// Those that are on. Without mutants compiled in none ever is, at no cost.
class Mutants {
 public:
  Mutants() = default;

  // Throws std::invalid_argument for a name that is none of these, or if there are none.
  static Mutants from_names(const std::vector<std::string>& names);

  [[nodiscard]] constexpr bool on(Mutant mutant) const {
    if constexpr (!kHasMutants) return false;
    return switches_[static_cast<size_t>(mutant)];
  }
  void turn_on(Mutant mutant) { switches_.set(static_cast<size_t>(mutant)); }

 private:
  std::bitset<kMutantsMax> switches_;
};

}  // namespace rehearsal
