#include "core/session/mutants.h"

#include <array>
#include <stdexcept>

namespace rehearsal {
namespace {

using enum Mutant;
using enum MutantKind;

constexpr std::array kRows = std::to_array<MutantRow>({
    {no_deduplication, "no_deduplication", fault,
     "what has arrived is sent again, and a frame that is received twice is handled twice"},
    {deduplication_slides, "deduplication_slides", ordering,
     "what is missing before a frame that has arrived counts as received"},
    {deduplication_forgotten, "deduplication_forgotten", fault,
     "a reconnection forgets at both ends which frames were received"},
    {reset_is_final, "reset_is_final", fault, "the loss of a link is the loss of the peer"},
    {room_wakes_nobody, "room_wakes_nobody", other,
     "an acknowledgement does not wake the messages that wait for room"},
    {no_back_pressure, "no_back_pressure", other,
     "calls do not wait for room: the queue to a slow peer grows without end"},
    {no_fencing, "no_fencing", fault, "a silent peer is never given up"},
    {fenced_side_not_told, "fenced_side_not_told", fault, "who is fenced is not told"},
    {destination_unchecked, "destination_unchecked", fault,
     "frames for another life of their receiver are taken"},
    {position_not_told, "position_not_told", fault,
     "a link that was made again does not begin with what its ends have received"},
    {backlog_in_one_burst, "backlog_in_one_burst", fault,
     "all that was not acknowledged is sent at once when a link was made again"},
    {one_refusal_is_death, "one_refusal_is_death", fault,
     "a peer that refuses a connection once is taken for dead"},
    {calls_never_time_out, "calls_never_time_out", fault, "a call's time-out never comes"},
    {nested_calls_count, "nested_calls_count", ordering,
     "nested calls wait for a place among the functions that execute at once"},
    {monitor_kept_while_parked, "monitor_kept_while_parked", other,
     "a method that waits keeps other methods out of its object"},
    {answered_calls_stay, "answered_calls_stay", other, "an answered call stays in its table"},
    {answered_call_keeps_its_deadline, "answered_call_keeps_its_deadline", other,
     "the deadline of a call that is answered stays among the timers"},
    {remote_error_not_stored, "remote_error_not_stored", other,
     "the error of a function that creates a value is not kept for those that ask for it"},
    {context_lost_in_async, "context_lost_in_async", other,
     "the answer of an asynchronous function is not recorded in its autograd context"},
    {unwanted_response_unread, "unwanted_response_unread", ordering,
     "the references in a response that nobody waits for any more are dropped unread"},
    {forks_undone_at_timeout, "forks_undone_at_timeout", ordering,
     "a call that times out takes back the forks that it sent"},
    {uses_in_flight_hold_nothing, "uses_in_flight_hold_nothing", ordering,
     "a call to a referenced value does not hold its reference until it is answered"},
    {stream_without_credit, "stream_without_credit", other,
     "a function writes more values to its stream than the reader has credit for"},
    {stream_ignores_order, "stream_ignores_order", ordering,
     "the values of a stream are handed on as they arrive"},
    {stream_cancel_lost, "stream_cancel_lost", other,
     "the function whose stream is read no more is not told"},
    {cancel_not_nested, "cancel_not_nested", other,
     "what a call that was given up has called goes on"},
    {shield_dropped, "shield_dropped", other,
     "what a function calls in a shielded scope is given up with its call"},
    {order_not_kept, "order_not_kept", ordering,
     "calls that are made in order run when they are there, not when those before have ended"},
    {order_on_two_lanes, "order_on_two_lanes", ordering,
     "a small call overtakes a large one that was made in order before it"},
    {no_confirmation_gate, "no_confirmation_gate", ordering,
     "user code starts before its references are confirmed"},
    {confirm_never_refuses, "confirm_never_refuses", fault,
     "a fork of a value that is gone is confirmed"},
    {unknown_id_is_to_come, "unknown_id_is_to_come", fault,
     "what asks for a value that is gone waits for it"},
    {delete_before_answer, "delete_before_answer", ordering,
     "UserDelete leaves before its registration is answered"},
    {accept_on_adoption, "accept_on_adoption", ordering,
     "ChildAccept leaves when a fork arrives, not when its owner has answered"},
    {refused_child_accepts_not, "refused_child_accepts_not", fault,
     "a fork that is refused sends no ChildAccept"},
    {pins_survive_fencing, "pins_survive_fencing", fault,
     "pins stay although their holder is fenced"},
    {lost_owner_leaves_pending, "lost_owner_leaves_pending", fault,
     "forks that are not confirmed stay so when their owner is lost"},
    {lost_creator_refuses_nothing, "lost_creator_refuses_nothing", fault,
     "what waits for a creation goes on waiting when its creator is lost"},
    {owner_handles_keep_nothing, "owner_handles_keep_nothing", other,
     "the owner's own handles do not keep its value"},
    {owner_fork_registered_late, "owner_fork_registered_late", ordering,
     "a fork that the owner makes is registered later than it is sent"},
    {creation_in_two_steps, "creation_in_two_steps", ordering,
     "a created value exists before its creator's fork is registered"},
    {creation_withdrawn, "creation_withdrawn", ordering,
     "a creation that waits for room is withdrawn when it times out"},
    {failed_creation_wakes_nobody, "failed_creation_wakes_nobody", ordering,
     "who waits for a value is not woken when its creation fails"},
    {unsent_forks_stay, "unsent_forks_stay", fault,
     "the forks in a message that is never sent stay registered"},
    {handle_released_in_place, "handle_released_in_place", ordering,
     "the destructor of a reference changes the tables itself"},
    {values_end_in_place, "values_end_in_place", other,
     "the destructor of a value that nobody holds any more runs where nothing can wait"},
    {received_references_stay, "received_references_stay", other,
     "a shutdown releases only the references that a worker created"},
    {undefined_gradient_not_sent, "undefined_gradient_not_sent", other,
     "a message without any defined gradient is not sent"},
    {undecided_ignored, "undecided_ignored", other,
     "a node does not wait for send functions of which it is open whether they get gradients"},
    {mark_answered_at_once, "mark_answered_at_once", ordering,
     "marks are answered before the marks that they cause are"},
    {later_marks_not_sent, "later_marks_not_sent", other,
     "of the marks for a worker that take several messages, only the first of these is sent"},
    {pass_not_resumed, "pass_not_resumed", other,
     "nobody is told that what is not marked gets no gradients"},
    {early_gradient_refused, "early_gradient_refused", ordering,
     "gradients that come before the wave that resumes their pass are refused"},
    {committed_not_taken_back, "committed_not_taken_back", fault,
     "a worker keeps the gradients of a pass that failed after it had committed"},
    {backward_returns_early, "backward_returns_early", ordering,
     "gradients are answered before what they cause is"},
    {backward_returns_before_commit, "backward_returns_before_commit", ordering,
     "backward returns before all workers have their gradients"},
    {unused_result_hangs, "unused_result_hangs", other,
     "a pass waits for the gradient of a result that nothing depends on"},
    {failure_not_told, "failure_not_told", fault, "nobody is told that a pass has failed"},
    {failure_told_upwards_only, "failure_told_upwards_only", fault,
     "workers that were sent gradients are not told that their pass has failed"},
    {forget_dead_epochs, "forget_dead_epochs", ordering,
     "late gradients of a failed pass are taken"},
    {release_overtakes_calls, "release_overtakes_calls", ordering,
     "a context is released before the calls in it have arrived"},
    {holders_need_gradients, "holders_need_gradients", other,
     "a worker that was sent no tensor to differentiate is not told of its context's end"},
    {contexts_released_by_relays, "contexts_released_by_relays", fault,
     "a context is released by whoever called there, not by its creator"},
    {lost_creator_keeps_contexts, "lost_creator_keeps_contexts", fault,
     "the loss of a context's creator does not release it"},
    {execution_forgets_context, "execution_forgets_context", other,
     "what a served function calls by other means than its CallContext is not recorded"},
    {continuation_forgets_context, "continuation_forgets_context", other,
     "what is given to `then` does not call in the autograd context of whoever gave it"},
    {unrecorded_not_marked, "unrecorded_not_marked", other,
     "a pass takes a tensor that came outside of any context for a leaf of its own"},
    {step_repeated_unasked, "step_repeated_unasked", fault,
     "a step is repeated at owners that were not asked whether they have applied it"},
    {unanswered_step_counts, "unanswered_step_counts", fault,
     "a step whose answer is missing counts as applied when it is repeated"},
    {overtaken_order_obeyed, "overtaken_order_obeyed", ordering,
     "an owner obeys an optimizer's order that a later one has overtaken"},
    {lost_options_count_as_sent, "lost_options_count_as_sent", fault,
     "an owner counts as having the options that went along with a step that failed there"},
    {stale_gradient_stepped, "stale_gradient_stepped", other,
     "a parameter without a gradient is stepped with that of the step before"},
    {missing_gradients_ignored, "missing_gradients_ignored", other,
     "a step succeeds at an owner that has none of its gradients"},
    {parameter_stepped_twice, "parameter_stepped_twice", other,
     "a parameter that is given twice is stepped twice"},
    {failed_term_counts, "failed_term_counts", fault,
     "an owner adds gradients to a sum although another owner lacks them"},
    {sum_outlives_step, "sum_outlives_step", other,
     "a sum of gradients that was dropped, or whose step failed, is part of the next step"},
    {clip_norm_of_one_owner, "clip_norm_of_one_owner", other,
     "gradients are clipped by the norm of one owner's, not of all"},
    {unscaled_again, "unscaled_again", fault,
     "gradients whose scale is removed already are unscaled again when that is repeated"},
    {overflow_not_agreed, "overflow_not_agreed", other,
     "an overflow at one owner does not keep the others from their step"},
    {optimizer_never_released, "optimizer_never_released", other,
     "the owners' parts of an optimizer stay when it is gone"},
    {constructor_error_swallowed, "constructor_error_swallowed", other,
     "a step succeeds at an owner whose part of the optimizer could not be made"},
    {leaves_when_empty, "leaves_when_empty", ordering,
     "at shutdown a worker leaves as soon as it is empty"},
    {partial_barrier, "partial_barrier", ordering, "a shutdown asks only those that have arrived"},
    {shutdown_counts_own_calls_only, "shutdown_counts_own_calls_only", ordering,
     "a shutdown waits for mains only, not for what they and others have set going"},
    {shutdown_skips_references, "shutdown_skips_references", other,
     "a shutdown does not wait for references to be released"},
    {newcomers_not_told, "newcomers_not_told", fault,
     "who has arrived at the shutdown does not say so to a worker that comes back"},
    {shutdown_awaits_lost, "shutdown_awaits_lost", fault,
     "a shutdown waits for workers that are lost"},
    {shutdown_has_five_seconds, "shutdown_has_five_seconds", fault,
     "a shutdown gives up after five seconds, whatever it was given"},
    {arrival_is_timed, "arrival_is_timed", fault,
     "who has arrived at the shutdown gives up on workers that work on for five seconds"},
    {acknowledgement_wakes_no_shutdown, "acknowledgement_wakes_no_shutdown", ordering,
     "the last acknowledgement does not wake a shutdown that waits for it"},
    {lives_share_paths, "lives_share_paths", fault,
     "what a worker makes has the same path in each of its lives"},
    {serves_before_met, "serves_before_met", fault,
     "a worker that comes back is called before it has met all workers"},
    {joins_by_one_member, "joins_by_one_member", ordering,
     "who joins a dynamic group does not wait until all members know it"},
    {leaver_is_asked_on, "leaver_is_asked_on", other,
     "who leaves a dynamic group is sent new calls until it has gone"},
    {leaves_undrained, "leaves_undrained", ordering,
     "who leaves a dynamic group does not wait for the others' last calls"},
    {publication_wakes_nobody, "publication_wakes_nobody", ordering,
     "who looks a name up before it is published goes on waiting when it is"},
    {state_made_late, "state_made_late", ordering,
     "a worker joins, and is called, before its state is made"},
    {given_up_waits_stay, "given_up_waits_stay", other,
     "a wait in a primitive goes on although nobody waits for its call any more"},
    {given_up_waits_begin, "given_up_waits_begin", ordering,
     "an execution that nobody waits for any more begins to wait in a primitive"},
    {wake_lost_to_giving_up, "wake_lost_to_giving_up", ordering,
     "who is woken in a primitive, and given up before it goes on, does not hear of the wake"},
    {timer_outlives_wait, "timer_outlives_wait", other,
     "the timer of a wait in a primitive stays when that has ended"},
});

constexpr bool in_order() {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<size_t>(kRows[i].mutant) != i) return false;
  return kRows.size() <= kMutantsMax;
}
static_assert(in_order(), "a row for each mutant, in the order of the enum");

}  // namespace

std::span<const MutantRow> mutant_table() {
  if constexpr (kHasMutants) return kRows;
  return {};
}

Mutants Mutants::from_names(const std::vector<std::string>& names) {
  Mutants mutants;
  for (const std::string& name : names) {
    if (!kHasMutants)
      throw std::invalid_argument("there is no mutant '" + name + "': this build has none");
    bool known = false;
    for (const MutantRow& row : mutant_table()) {
      if (row.name != name) continue;
      mutants.turn_on(row.mutant);
      known = true;
    }
    if (!known) throw std::invalid_argument("there is no mutant named '" + name + "'");
  }
  return mutants;
}

std::vector<std::string> mutant_names() {
  std::vector<std::string> names;
  for (const MutantRow& row : mutant_table()) names.emplace_back(row.name);
  return names;
}

}  // namespace rehearsal
