#include "core/collectives/operation.h"

#include <c10/core/ScalarType.h>

#include <utility>

#include "core/api/call_context.h"
#include "core/base/call_bounds.h"
#include "core/base/short_text.h"
#include "core/base/user_code.h"
#include "core/calls/gatherings.h"

namespace rehearsal {
namespace {

// Of an operation that may take any time: before it asks how far the others are.
constexpr Duration kPatience = std::chrono::seconds(15);

// Serves a member: the answer leaves when the parcel is taken.
Future<Unit> deliver(CallContext& context, const Parcel& parcel) {
  const Caller& caller = *context.caller();
  const std::shared_ptr<NodeStrand> strand = caller.strand();
  auto taken = std::make_shared<FutureState<Unit>>(strand, CausalId{});
  // The call stays for as long as its answer is owed.
  strand->post([gatherings = &caller.gatherings(), from = context.caller_info().id, parcel,
                asker = &strand->running(), taken]() mutable {
    gatherings->mailboxes().deliver(from, std::move(parcel), *asker, taken);
  });
  return Future<Unit>(taken);
}

// Another member's failure, as far as it is told.
struct GroupFailure {
  uint8_t kind = 0;
  std::string text;
  std::string worker;
  friend void describe(GroupFailure& failure, auto&& fields) {
    fields(failure.kind, failure.text, failure.worker);
  }
};

void abandon(CallContext& context, const GroupName& name, const GroupFailure& failure) {
  const Caller& caller = *context.caller();
  if (failure.kind > static_cast<uint8_t>(kLastErrorKind)) throw BadValue("no kind of an error");
  Error why{.kind = static_cast<ErrorKind>(failure.kind),
            .text = short_text(failure.text),
            .worker = short_name(failure.worker),
            .chain = {context.caller_info().name}};
  caller.strand()->post(
      [gatherings = &caller.gatherings(), from = context.caller_info().id, name,
       why = std::move(why)] { gatherings->mailboxes().abandon(from, name, why); });
}

// Another member waits, and asks how far this one is.
Future<bool> compare(CallContext& context, const GroupName& name, uint64_t number,
                     const std::string& text) {
  const Caller& caller = *context.caller();
  auto answer = std::make_shared<FutureState<bool>>(caller.strand(), CausalId{});
  caller.strand()->post([gatherings = &caller.gatherings(), from = context.caller_info().id, name,
                         number, text, answer] {
    using Progress = Mailboxes::Progress;
    const Result<Progress> progress = gatherings->mailboxes().compare(from, name, number, text);
    answer->complete(progress.ok() ? Result<bool>(progress.value() == Progress::there)
                                   : Result<bool>(progress.error()));
  });
  return Future<bool>(answer);
}

// A parcel is recorded in no autograd context, and has the operation's time.
template <AnyFunction F, class... A>
Draft draft_of(const Caller& caller, WorkerId to, F function, const A&... arguments) {
  Draft draft = function_draft(caller, to, function, arguments...);
  draft.timeout = Timeout::never();
  draft.call.context.reset();
  return draft;
}

// Has every other member compare what it does. A failure ends the group; who has not come is noted.
void ask_others(const std::shared_ptr<ProcessGroup::Membership>& group, uint64_t number,
                const std::string& text, uint64_t operation) {
  const Caller& caller = *group->caller;
  for (const WorkerId worker : group->workers) {
    if (worker == caller.strand()->self()) continue;
    caller.start(draft_of(caller, worker, &compare, group->name, number, text),
                 [group, operation, worker](Result<Answer>&& answer) {
                   Mailboxes& mailboxes = *group->mailboxes;
                   if (!answer.ok()) {
                     mailboxes.fail(group->name, answer.error());
                     return;
                   }
                   const Result<bool> there =
                       group->caller->decode<bool>(std::move(answer).value());
                   if (there.ok() && !there.value())
                     mailboxes.note_absent(group->name, operation, worker);
                 });
  }
}

void tell_others(const ProcessGroup::Membership& group, const Error& why) {
  const Caller& caller = *group.caller;
  for (const WorkerId worker : group.workers) {
    if (worker == caller.strand()->self()) continue;
    caller.start(draft_of(caller, worker, &abandon, group.name,
                          GroupFailure{static_cast<uint8_t>(why.kind), short_text(why.text),
                                       short_name(why.worker)}),
                 [](Result<Answer>&&) {});
  }
}

}  // namespace

void register_parcels(FunctionRegistry& registry) {
  registry.function("rehearsal.deliver", &deliver).runs_inline().only_waits();
  registry.function("rehearsal.compare", &compare).runs_inline().only_waits();
  registry.function("rehearsal.abandon", &abandon).runs_inline();
}

std::string shape_text(const at::Tensor& tensor) {
  std::string text = std::string(c10::toString(tensor.scalar_type())) + "[";
  for (int64_t i = 0; i < tensor.dim(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.size(i));
  return text + "]";
}

ProcessGroup::Membership::Membership(std::shared_ptr<const Caller> the_caller)
    : caller(std::move(the_caller)) {}

ProcessGroup::Membership::~Membership() {
  if (!is_open) return;
  caller->strand()->post([mailboxes = mailboxes, name = name] { mailboxes->close(name); });
}

// ---- one operation ----------------------------------------------------------------

// Nobody waits for the function that uses the group any more: it will not go on.
void Operation::fail_with(Execution& user, Membership& group) {
  if (group.user == user.path()) return;
  group.user = user.path();
  Task fail = [mailboxes = group.mailboxes, name = group.name,
               strand = std::weak_ptr(group.caller->strand())] {
    const std::shared_ptr<NodeStrand> open = strand.lock();
    if (open == nullptr || open->closed()) return;
    mailboxes->fail(name, {.kind = ErrorKind::cancelled,
                           .text = "the call in which worker '" + open->name() +
                                   "' uses the process group was given up",
                           .worker = open->name()});
  };
  if (user.given_up) return fail();
  user.when_given_up.push_back(std::move(fail));
}

// An operation that has been asked for, until it has ended.
struct Operation::Starting {
  std::shared_ptr<Membership> group;
  Plan plan;
  Body body;
  Promise<Unit> promise;
  CausalId asking;  // what starts the question how far the others are
};

Mailboxes::Beginning Operation::beginning_of(const std::shared_ptr<Starting>& starting,
                                             const std::shared_ptr<uint64_t>& operation) {
  const Plan& plan = starting->plan;
  const Caller& caller = *starting->group->caller;
  Mailboxes::Beginning beginning;
  beginning.text = plan.text;
  beginning.between_two = plan.between_two;
  beginning.number = plan.number;
  const Duration time = starting->group->timeout.or_default(caller.rpc_timeout());
  if (time.count() > 0) beginning.deadline = caller.when_passed(time);
  if (plan.between_two) return beginning;
  beginning.patience = caller.when_passed(time.count() > 0 ? time / 4 : kPatience);
  beginning.ask = [group = starting->group, number = plan.number, text = plan.text,
                   asking = starting->asking, operation] {
    group->caller->strand()->run_continuation({.id = asking}, [group, number, text, operation] {
      ask_others(group, number, text, *operation);
    });
  };
  return beginning;
}

Future<Unit> Operation::start(const std::shared_ptr<Membership>& group, Plan plan, Body body) {
  const std::shared_ptr<NodeStrand>& strand = group->caller->strand();
  Execution& running = strand->running();
  const CausalId id = running.next_id();
  const CausalId asking = running.next_id();
  auto starting = std::make_shared<Starting>(
      Starting{group, std::move(plan), std::move(body), Promise<Unit>(strand, id), asking});
  Future<Unit> done = starting->promise.future();
  strand->post([starting = std::move(starting), id, &running,
                shielded = call_bounds(running).shielded]() mutable {
    if (!shielded) fail_with(running, *starting->group);
    const Caller& caller = *starting->group->caller;
    const auto operation = std::make_shared<uint64_t>();
    *operation = starting->group->mailboxes->begin(
        starting->group->name, beginning_of(starting, operation), caller.calls());
    const std::string_view function = starting->plan.function;
    caller.strand()->run_on_stack(
        {.id = id, .label = function, .monitor = nullptr},
        [starting = std::move(starting), operation = *operation]() mutable {
          Operation(starting->group, starting->plan, operation)
              .execute(starting->body, starting->promise);
        });
  });
  return done;
}

void Operation::execute(Body& body, const Promise<Unit>& promise) {
  const std::shared_ptr<NodeStrand>& strand = group_->caller->strand();
  const Result<Unit> outcome = run_user_code(
      strand->name(), plan_.function, [&] { body(*this); }, strand->exception_hook());
  if (!outcome.ok()) {
    // Nobody hears of a failure any more if the node has ended.
    (void)run_user_code(strand->name(), plan_.function, [&] { fail(outcome.error(), promise); });
    return;
  }
  strand->post([mailboxes = group_->mailboxes, name = group_->name, number = number_, promise] {
    mailboxes->end(name, number);
    promise.complete(Unit{});
  });
}

void Operation::fail(const Error& why, const Promise<Unit>& promise) {
  if (plan_.turn) group_->carrier->give_up();
  Error first;
  bool tells = false;
  group_->caller->visit_strand("the state of a process group", [&] {
    first = group_->mailboxes->fail(group_->name, why);
    tells = group_->mailboxes->take_telling(group_->name);
    group_->mailboxes->end(group_->name, number_);
  });
  first.text = plan_.text + ": " + first.text;
  if (!cause_.empty() && first.text.find(cause_) == std::string::npos)
    first.text += "; before that: " + cause_;
  first.function = plan_.function;
  promise.complete(first);
  if (tells) tell_others(*group_, first);
}

void Operation::wait(const std::function<void(const WaitHandle&, Mailboxes::Outcome&)>& arrange,
                     Mailboxes::Outcome& outcome) {
  const Status waited = group_->caller->strand()->wait(
      plan_.text, {}, [&](const WaitHandle& wait) { arrange(wait, outcome); });
  if (!waited.ok()) throw RpcError(waited.error());
  if (outcome.error) throw RpcError(*outcome.error);
}

void Operation::send(uint32_t to, uint64_t step, std::vector<at::Tensor> tensors) {
  const Caller& caller = *group_->caller;
  Draft draft =
      draft_of(caller, group_->workers[to], &deliver,
               Parcel{.group = group_->name,
                      .slot = {plan_.between_two, plan_.number, plan_.step + step, group_->rank},
                      .operation = plan_.text,
                      .tensors = std::move(tensors)});
  const CallId call = draft.call.id;
  Mailboxes* const mailboxes = group_->mailboxes;
  caller.start(std::move(draft),
               [mailboxes, name = group_->name, number = number_, call](Result<Answer>&& answer) {
                 mailboxes->answered(name, number, call,
                                     answer.ok() ? MaybeError() : MaybeError(answer.error()));
               });
  caller.strand()->post([mailboxes, name = group_->name, number = number_, call, to] {
    mailboxes->sent(name, number, call, to);
  });
}

std::vector<at::Tensor> Operation::receive(uint32_t from, uint64_t step,
                                           const std::vector<at::Tensor>& like) {
  const ParcelSlot slot{plan_.between_two, plan_.number, plan_.step + step, from};
  Mailboxes::Outcome got;
  wait(
      [&](const WaitHandle& wait, Mailboxes::Outcome& outcome) {
        group_->mailboxes->receive(group_->name, number_, slot, wait, outcome);
      },
      got);
  bool fits = got.tensors.size() == like.size();
  for (size_t i = 0; fits && i < like.size(); ++i)
    fits = got.tensors[i].defined() && got.tensors[i].layout() == like[i].layout() &&
           got.tensors[i].scalar_type() == like[i].scalar_type() &&
           got.tensors[i].sizes() == like[i].sizes();
  // A member that sends others than those of an operation must not record this one's work.
  for (at::Tensor& tensor : got.tensors)
    if (tensor.defined() && tensor.requires_grad()) tensor = tensor.detach();
  if (fits) return std::move(got.tensors);
  std::string given;
  for (const at::Tensor& tensor : got.tensors)
    given += " " + (tensor.defined() ? shape_text(tensor) : "nothing");
  std::string wanted;
  for (const at::Tensor& tensor : like) wanted += " " + shape_text(tensor);
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "worker '" + group_->names[from] + "' gives" + given + ", worker '" +
                          group_->names[group_->rank] + "' takes" + wanted,
                  .worker = group_->names[from]});
}

// ---- by a carrier -----------------------------------------------------------------

void Operation::carry(CarriedOperation operation) {
  const Caller& caller = *group_->caller;
  Mailboxes* const mailboxes = group_->mailboxes;
  Mailboxes::Outcome turn;
  wait(
      [&](const WaitHandle& wait, Mailboxes::Outcome& place) {
        operation.time = group_->timeout.or_default(caller.rpc_timeout());
        mailboxes->await_turn(group_->name, number_, *plan_.turn, wait, place);
      },
      turn);
  const bool is_opening = operation.kind == CarriedOperation::Kind::open;
  const auto failed = std::make_shared<MaybeError>();
  group_->carrier->start(
      std::move(operation), [mailboxes, failed, strand = caller.strand(), name = group_->name,
                             number = number_](MaybeError error) {
        strand->post([mailboxes, failed, name, number, error = std::move(error)] {
          *failed = error;
          mailboxes->carried(name, number);
        });
      });
  if (!is_opening) pass_turn();
  Mailboxes::Outcome carried;
  wait(
      [&](const WaitHandle& wait, Mailboxes::Outcome& place) {
        mailboxes->await_carried(group_->name, number_, wait, place);
      },
      carried);
  if (*failed) find_cause(**failed);
}

void Operation::pass_turn() {
  group_->caller->strand()->post(
      [mailboxes = group_->mailboxes, name = group_->name] { mailboxes->pass_turn(name); });
}

// A member that is lost does not answer, and is given up; one whose carrier has failed as well asks
// in its turn. When all have answered it was the carrier alone.
void Operation::find_cause(const Error& why) {
  cause_ = why.text;
  const Caller& caller = *group_->caller;
  const auto silent = std::make_shared<size_t>(group_->workers.size() - 1);
  for (const WorkerId worker : group_->workers) {
    if (worker == caller.strand()->self()) continue;
    caller.start(draft_of(caller, worker, &compare, group_->name, plan_.number, plan_.text),
                 [group = group_, silent, why](Result<Answer>&& answer) {
                   if (!answer.ok())
                     group->mailboxes->fail(group->name, answer.error());
                   else if (--*silent == 0)
                     group->mailboxes->fail(group->name, why);
                 });
  }
  Mailboxes::Outcome outcome;
  wait(
      [&](const WaitHandle& wait, Mailboxes::Outcome& place) {
        group_->mailboxes->await_failure(group_->name, number_, wait, place);
      },
      outcome);
  throw RpcError(why);
}

void Operation::finish() {
  Mailboxes::Outcome outcome;
  wait(
      [&](const WaitHandle& wait, Mailboxes::Outcome& place) {
        group_->mailboxes->await_taken(group_->name, number_, wait, place);
      },
      outcome);
}

}  // namespace rehearsal
