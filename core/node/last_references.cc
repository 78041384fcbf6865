// The references and contexts that are left when a group shuts down: they are let go, and told.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/api/distributed_checkpoint.h"
#include "core/node/ended_states.h"
#include "core/node/node_parts.h"

namespace rehearsal {
namespace {

// So many are told one by one; of the others, how many there are.
constexpr size_t kLeaksTold = 10;

// Of the library's own.
constexpr std::string_view kEndOfState = "~state";

// For what dies on other threads, and for all that goes with it at other workers: far longer than
// that takes, also on a machine that is busy.
constexpr Duration kLastMoment = std::chrono::milliseconds(500);

std::string_view label_of_end(const WorkerStates::State& state) {
  return state.death_label == nullptr ? kEndOfState : state.death_label();
}

// The library's own hold no references: they end with the node.
bool has_own_states(const Program::Member& member) {
  const std::type_index of_library = checkpoint_state().type;
  return std::any_of(member.states.begin(), member.states.end(),
                     [&](const StateMaker& maker) { return maker.type != of_library; });
}

}  // namespace

// The worker's states end first: what they hold is not left. Where a worker has come back, its
// calls may be here again: those that run keep the states, later ones are told that they have
// ended.
void NodeParts::release_references() {
  const bool used = served.size() > 0 || strand->continuations() > 0;
  if (!has_own_states(program.members()[options.id.value]) || states_have_ended || used)
    return release_all_references();
  states_have_ended = true;
  auto ending = std::make_shared<WorkerStates>(std::move(states));
  states.make({{.type = typeid(EndedStates),
                .make = [](Worker&) { return std::make_shared<EndedStates>(); }}},
              worker);
  end_states(std::move(ending));
}

// Each in an execution of its own, the last one first.
void NodeParts::end_states(std::shared_ptr<WorkerStates> states) {
  if (states->empty()) return release_all_references();
  WorkerStates::State last = states->take_last();
  const std::string_view label = label_of_end(last);
  const auto go_on = [this, states = std::move(states)] { end_states(states); };
  strand->run_on_stack(
      {.id = main->next_id(), .label = label, .monitor = nullptr, .dying = label.substr(1)},
      [strand = strand, go_on, value = std::move(last.value)]() mutable {
        value = nullptr;
        strand->post(go_on);
      },
      go_on);
}

void NodeParts::drop_states() {
  while (!states.empty()) {
    WorkerStates::State last = states.take_last();
    strand->end_life(std::move(last.value), label_of_end(last));
  }
}

std::vector<HeldValue> NodeParts::values_left() {
  std::vector<HeldValue> left = served.take_objects_left();
  for (HeldValue& value : rrefs.take_values_left()) left.push_back(std::move(value));
  return left;
}

// In a dynamic group, the values that others hold here may refer to what is elsewhere: that is no
// leak.
void NodeParts::release_all_references() {
  published.publish_no_more({.kind = ErrorKind::peer_lost,
                             .text = "worker '" + strand->name() + "' shuts down",
                             .worker = strand->name()});
  published.release(rrefs);
  released_ = true;
  leaks_count_ = !program.is_dynamic() || rrefs.fork_count() == 0;
  const std::vector<std::string> left = contexts.release_all();
  if (program.is_dynamic()) contexts.release_at_leaving();
  if (leaks_count_) note_leaks(left);
  look_for_late_references();
}

void NodeParts::keep_references() {
  published.publish_again();
  released_ = false;
  deadlines.remove(std::exchange(last_moment_, {}));
}

// Those that other threads are about to let go have a moment before they are called leaks. A
// continuation that a timer wakes may use what is held, make some more, and have others run: they
// go when nothing runs here and nothing is waited for.
void NodeParts::look_for_late_references() {
  const bool holds = rrefs.holds_references() || (!program.is_dynamic() && contexts.size() > 0);
  if (last_moment_.number != 0 || !holds) return;
  last_moment_ = deadlines.add(strand->runtime().now() + kLastMoment, [this] {
    last_moment_ = {};
    if (!is_busy()) {
      std::vector<std::string> left;
      if (!program.is_dynamic()) left = contexts.release_all();
      for (std::string& reference : rrefs.release_all()) left.push_back(std::move(reference));
      if (leaks_count_) note_leaks(left);
    }
    progressed();
  });
}

// A timer may wake a continuation even now.
void NodeParts::refuse_calls() {
  pending.refuse_all({.kind = ErrorKind::node_stopped,
                      .text = "worker '" + strand->name() + "' has shut down, and calls nobody",
                      .worker = strand->name()});
}

void NodeParts::note_leaks(const std::vector<std::string>& left) {
  for (size_t i = 0; i < left.size(); ++i) {
    const bool is_last = i == kLeaksTold;
    const std::string line =
        is_last ? std::to_string(left.size() - i) + " more references or autograd contexts"
                : left[i];
    strand->trace().on_event(
        {.kind = EventKind::reference_leaked, .worker = options.id, .text = line});
    leaks_.push_back(line);
    if (is_last) break;
  }
}

MaybeError NodeParts::why_leaked() const {
  if (leaks_.empty() || !options.strict_leaks) return std::nullopt;
  std::string text = "references were still held when the worker shut down";
  for (const std::string& leak : leaks_) text += "\n  " + leak;
  return Error{.kind = ErrorKind::rref_leaked,
               .text = text +
                       "\nlet them go before the main returns, or allow it "
                       "(NodeOptions::strict_leaks)",
               .worker = worker.name()};
}

}  // namespace rehearsal
