#include "core/calls/served_calls.h"

#include "core/base/check.h"
#include "core/base/engine_threads.h"
#include "core/base/short_text.h"
#include "core/base/user_code.h"
#include "core/calls/profiler_range.h"
#include "core/functions/operator_call.h"
#include "core/session/session.h"
#include "core/values/tensor_form.h"

namespace rehearsal {
namespace {

Error cancelled_error() {
  return {.kind = ErrorKind::cancelled, .text = "the caller gave up before the call started"};
}

uint64_t bytes_of(const Payload& payload) {
  uint64_t bytes = payload.values.size();
  for (const at::Tensor& tensor : payload.tensors) bytes += memory_bytes(tensor);
  return bytes;
}

}  // namespace

void ServedCalls::on_call(WorkerId from, Call&& call) {
  MaybeError refused = why_refused(from, call);
  if (sessions_.lost(from)) return;  // It has just been fenced.
  if (served_.contains(call.id) && !session_options_.mutants.on(Mutant::no_deduplication)) {
    refused = repeated();
    call.order.reset();
  }
  if (!refused) refused = why_overloaded(from);
  if (refused) drop_unused(call.arguments);
  if (call.target || call.created)
    return references_->serve(from, std::move(call), std::move(refused));
  const std::shared_ptr<ServedCall> served = take_in(from, std::move(call));
  served->refused = std::move(refused);
  if (!served->call.arguments.forks.empty())
    return await_forks(served, [this, served](Status ready) { start(served, ready); });
  start(served, Unit{});
}

void ServedCalls::start(const std::shared_ptr<ServedCall>& served, const Status& ready) {
  if (served->refused) return answer_error(served, *served->refused);
  if (!ready.ok()) return answer_error(served, ready.error());
  run(served, {}, {}, {});
}

std::shared_ptr<ServedCall> ServedCalls::admit(WorkerId from, Call call,
                                               UniqueFunction<void(Status)> ready) {
  std::shared_ptr<ServedCall> served = take_in(from, std::move(call));
  await_forks(served, std::move(ready));
  return served;
}

std::shared_ptr<ServedCall> ServedCalls::take_in(WorkerId from, Call&& call) {
  auto served = std::make_shared<ServedCall>(from, std::move(call));
  if (served->call.time_left.count() > 0)
    served->deadline = saturated(strand_.runtime().now(), served->call.time_left);
  const auto [place, fresh] = spare_.add(served_, served->call.id);
  if (fresh || session_options_.mutants.on(Mutant::no_deduplication)) place->second = served;
  if (from != strand_.self())
    bytes_of_.add_unlimited(from, served->bytes = bytes_of(served->call.arguments));
  if (served->call.order) in_order_.arrived(*served->call.order, served->call.id);
  if (!early_cancels_.empty()) served->cancelled = was_cancelled_early(from, served->call.id);
  return served;
}

void ServedCalls::await_forks(const std::shared_ptr<ServedCall>& served,
                              UniqueFunction<void(Status)> ready) {
  served->when_confirmed = std::move(ready);
  forks_->adopt_forks(served->caller, served->call.arguments, [this, served](Status confirmed) {
    // Not before `admit` has returned to its caller.
    strand_.post([this, served, confirmed = std::move(confirmed)]() mutable {
      settle_forks(served, std::move(confirmed));
    });
  });
}

void ServedCalls::settle_forks(const std::shared_ptr<ServedCall>& served, Status confirmed) {
  auto ready = std::exchange(served->when_confirmed, nullptr);
  if (!ready) return;  // Its caller was lost meanwhile.
  if (served->cancelled) return ready(cancelled_error());
  ready(std::move(confirmed));
}

void ServedCalls::forget(const std::shared_ptr<ServedCall>& served,
                         std::optional<ErrorKind> failed) {
  strand_.trace().on_event({.kind = EventKind::call_served,
                            .worker = strand_.self(),
                            .peer = served->caller,
                            .id = served->call.id,
                            .number = failed ? 1 + static_cast<uint64_t>(*failed) : 0,
                            .text = served->label});
  const auto found = served_.find(served->call.id);
  if (found != served_.end() && found->second == served &&
      !session_options_.mutants.on(Mutant::answered_calls_stay)) {
    found->second.reset();
    spare_.erase(served_, found);
  }
  if (served->cancelled && served->execution) nested_.forget_maker(served->execution->path());
  if (served->call.order)
    strand_.post(
        [this, order = *served->call.order, id = served->call.id] { in_order_.ended(order, id); });
  Payload& arguments = served->call.arguments;
  if (served->caller != strand_.self()) decoded_peak_ = std::max(decoded_peak_, arguments.decoded);
  bytes_of_.remove(served->caller, std::exchange(served->bytes, 0));
  if (!arguments.tensors.empty() || !arguments.handles.empty())
    strand_.release_later(std::make_shared<Payload>(std::move(arguments)));
  strand_.progressed();
}

// Breaks the cycles: a waiting call can own the object whose method would have produced its value,
// and what runs when its references are confirmed owns the call.
void ServedCalls::clear() {
  early_cancels_.clear();
  const auto ended = std::make_shared<decltype(served_)>(std::exchange(served_, {}));
  for (auto& [id, served] : *ended) {
    if (served->execution)
      strand_.release_later(
          std::make_shared<std::vector<Task>>(std::exchange(served->execution->when_given_up, {})));
    if (Task given_up = std::exchange(served->on_given_up, nullptr)) given_up();
    served->when_confirmed = nullptr;
    if (served->stream)
      served->stream->close({.kind = ErrorKind::node_stopped,
                             .text = "this worker has stopped",
                             .worker = strand_.name(),
                             .function = std::string(served->label)});
  }
  for (auto& [id, weak] : std::exchange(given_up_, {}))
    if (const std::shared_ptr<Run> run = weak.lock())
      objects_left_.push_back(std::move(run->target.object));
  strand_.release_later(ended);
  strand_.release_later(std::make_shared<decltype(queue_)>(std::exchange(queue_, {})));
  strand_.release_later(std::make_shared<decltype(until_read_)>(std::exchange(until_read_, {})));
  strand_.release_later(std::make_shared<decltype(in_order_)>(std::exchange(in_order_, {})));
}

uint64_t ServedCalls::waiting() const {
  return static_cast<uint64_t>(std::count_if(
      served_.begin(), served_.end(), [](const auto& entry) { return entry.second->only_waits; }));
}

// ---- running ----------------------------------------------------------------

StackPlacement ServedCalls::placement_of(const Call& call) const {
  if (call.kind == CallKind::operator_) return placement_of_operator(call.name, call.arguments);
  return registry_.functions()[call.function].placement;
}

void ServedCalls::run(const std::shared_ptr<ServedCall>& served, ServedTarget target,
                      Finisher created, Task done) {
  auto run = std::make_shared<Run>();
  run->served = served;
  run->target = std::move(target);
  run->created = std::move(created);
  run->done = std::move(done);
  const Call& call = served->call;
  if (!call.order || session_options_.mutants.on(Mutant::order_not_kept)) return begin(run);
  in_order_.ready(*call.order, call.id, [this, run] { begin(run); });
}

void ServedCalls::begin(std::shared_ptr<Run> run) {
  const std::shared_ptr<ServedCall>& served = run->served;
  if (sessions_.leaves_unread(served->caller)) {
    strand_.mark("a call waits until its caller has read answers");
    return until_read_[served->caller].push_back(
        [this, run = std::move(run)]() mutable { begin(std::move(run)); });
  }
  run->counts = counts(served->call);
  if (!run->counts || running_outer_ < options_.execution_limit) return launch(std::move(run));
  strand_.mark("a call waits for its turn to execute");
  if (queue_.size() >= options_.queue_limit) {
    const std::optional<std::shared_ptr<Run>> last = queue_.give_way(served->caller);
    conclude(last ? *last : run, overloaded(options_.queue_limit, "waiting already"));
    if (!last) return;
  }
  queue_.push(served->caller, std::move(run));
}

// Nested calls never wait for those that wait for them; nor do creations, since what executes may
// wait for their values; nor does what never parks, which may be what they wait for: a part of a
// collective operation, a name that is published.
bool ServedCalls::counts(const Call& call) const {
  const Mutants& mutants = session_options_.mutants;
  if (call.depth > 0 || call.created) return mutants.on(Mutant::nested_calls_count);
  return placement_of(call) != StackPlacement::inline_ ||
         mutants.on(Mutant::inline_calls_wait_their_turn);
}

void ServedCalls::launch(std::shared_ptr<Run> run) {
  const std::shared_ptr<ServedCall>& served = run->served;
  if (served->cancelled) {
    strand_.mark("a call was given up before it started");
    return conclude(run, cancelled_error());
  }
  const Call& call = served->call;
  run->is_nested = call.depth > 0 && !call.created && served->caller != strand_.self();
  if (run->is_nested && !nested_of_.add(served->caller, options_.nested_limit)) {
    run->is_nested = false;
    return conclude(run, overloaded(options_.nested_limit, "nested in calls of this worker"));
  }
  served->label = call.kind == CallKind::operator_
                      ? std::string_view(call.name)
                      : std::string_view(registry_.functions()[call.function].name);
  strand_.make_execution(served->execution, call.id, served->label);
  served->execution->set_stream(call.stream);
  served->execution->depth = call.depth + 1;
  served->execution->deadline = served->deadline;
  const Mutants& mutants = session_options_.mutants;
  const bool of_value =
      run->target.object.streams != nullptr && !mutants.on(Mutant::method_in_own_streams);
  served->execution->streams =
      of_value ? run->target.object.streams : StreamSet::from_pool(strand_.devices());
  fix_devices(*served);
  if (call.context && !mutants.on(Mutant::execution_forgets_context))
    served->execution->context = std::make_shared<const ContextName>(*call.context);
  if (run->counts) ++running_outer_;
  if (call.credit > 0) open_stream(*served, run->counts);
  const StackPlacement placement = placement_of(call);
  if (!run->target.monitor) return enter(std::move(run), placement);
  Monitor& monitor = *run->target.monitor;
  monitor.enter([this, run = std::move(run), placement]() mutable {
    // The node ended while the call waited for its turn.
    if (strand_.closed()) {
      run->target.monitor->leave();
      return strand_.release_later(std::move(run));
    }
    if (session_options_.mutants.on(Mutant::monitor_kept_while_parked))
      run->done = [monitor = run->target.monitor, done = std::move(run->done)]() mutable {
        monitor->leave();
        if (done) done();
      };
    else
      run->served->execution->monitor = run->target.monitor;
    enter(std::move(run), placement);
  });
}

void ServedCalls::fix_devices(ServedCall& served) const {
  if (devices_ == nullptr) return;
  served.devices = devices_->answers(served.caller);
  if (session_options_.mutants.on(Mutant::answered_by_own_map))
    served.devices = {std::shared_ptr<void>(), devices_->to(served.caller)};
}

void ServedCalls::enter(std::shared_ptr<Run> run, StackPlacement placement) {
  ++running_;
  Execution& execution = *run->served->execution;
  strand_.trace().on_event({.kind = EventKind::execution_started,
                            .worker = strand_.self(),
                            .peer = run->served->caller,
                            .id = execution.started_by(),
                            .text = execution.label()});
  strand_.trace().on_event({.kind = EventKind::call_executed,
                            .worker = strand_.self(),
                            .peer = run->served->caller,
                            .id = execution.started_by(),
                            .text = execution.label()});
  auto strand = strand_.shared_from_this();
  strand_.runtime().execute(execution, placement,
                            [this, run = std::move(run), strand = std::move(strand)] {
                              perform(*run);
                              strand->post_always([this, run, strand] {
                                if (strand->killed()) return;
                                if (!strand->closed()) return ended(run, std::move(*run->outcome));
                                // The node has ended meanwhile: nobody waits for the outcome.
                                Execution& execution = *run->served->execution;
                                if (execution.monitor)
                                  std::exchange(execution.monitor, nullptr)->leave();
                                --running_;
                              });
                            });
}

// Sets the run's outcome, in place.
void ServedCalls::perform(Run& run) {
  const ServedCall& served = *run.served;
  const ProfilerRange range([&] { return std::string(served.label); });
  const InStreams in(served.execution->streams);
  const EngineThreads engine(strand_.devices());
  Status performed = guarded(served, [&]() -> Unit {
    Returned returned = invoke(run);
    HeldValue* value = std::get_if<HeldValue>(&returned);
    if (value != nullptr && run.created) value->streams = served.execution->streams;
    if (value == nullptr || run.created) {
      run.outcome.emplace(std::move(returned));
    } else {
      run.outcome.emplace(encode(served, *value));
    }
    return {};
  });
  if (!performed.ok()) run.outcome.emplace(std::move(performed.error()));
}

// Runs user code of the call. A value that cannot be read or sent is bad_arguments.
template <class F>
auto ServedCalls::guarded(const ServedCall& served, F body) -> Result<std::invoke_result_t<F>> {
  using Given = Result<std::invoke_result_t<F>>;
  const auto run = [&]() -> Given {
    try {
      return body();
    } catch (const BadValue& bad) {
      return Error{.kind = ErrorKind::bad_arguments,
                   .text = short_text(bad.what()),
                   .worker = strand_.name(),
                   .function = std::string(served.label)};
    }
  };
  Result<Given> given = run_user_code(strand_.name(), served.label, run, strand_.exception_hook());
  if (!given.ok()) return std::move(given.error());
  return std::move(given).value();
}

Returned ServedCalls::invoke(Run& run) {
  ServedCall& served = *run.served;
  Call& call = served.call;
  put_on_devices(call.arguments, strand_);
  if (records_ != nullptr && bring_gradients(call.arguments.tensors)) {
    const MessageText text{"the arguments of", served.label, served.caller};
    if (call.autograd)
      records_->record_receive(*call.autograd, text, call.arguments);
    else
      records_->mark_unrecorded(text, why_unrecorded(call.context.has_value()), call.arguments);
  }
  if (call.kind == CallKind::operator_)
    return call_operator(call.name, call.arguments, registry_.allowed_operators(),
                         registry_.operator_memory_max());
  const Function& function = registry_.functions()[call.function];
  std::optional<Returned> returned;
  with_context_(run.served, [&](CallContext& context) {
    returned = function.invoke(
        {context, run.target.object.value.get(), call.arguments, served.stream.get()});
  });
  return std::move(*returned);
}

Response ServedCalls::encode(const ServedCall& served, const HeldValue& value) {
  if (value.type->write == nullptr)
    throw BadValue("a value of this type cannot be sent: use `remote` and a reference to it");
  Response encoded{.id = served.call.id, .value = {}, .error = {}, .autograd = {}};
  ValueWriter writer(encoded.value);
  value.type->write(value.value.get(), writer);
  writer.finish(served.devices.get(), {"the device map of its caller for", strand_.name()},
                device_way(strand_, served.caller));
  if (served.call.context)
    encoded.autograd =
        records_->record_send(*served.call.context, served.caller, RecordHook::CausedBy::receiver,
                              encoded.value, "the result of '" + std::string(served.label) + "'");
  return encoded;
}

// ---- ending -----------------------------------------------------------------

void ServedCalls::ended(const std::shared_ptr<Run>& run, Result<Outcome>&& outcome) {
  Execution& execution = *run->served->execution;
  strand_.trace().on_event({.kind = EventKind::execution_ended,
                            .worker = strand_.self(),
                            .id = execution.started_by(),
                            .text = execution.label()});
  if (execution.monitor) std::exchange(execution.monitor, nullptr)->leave();
  --running_;
  if (run->counts) --running_outer_;
  if (run->is_nested) nested_of_.remove(run->served->caller);
  conclude(run, std::move(outcome));
  start_queued();
  strand_.progressed();
}

void ServedCalls::conclude(const std::shared_ptr<Run>& run, Result<Outcome>&& outcome) {
  if (outcome.ok()) {
    if (Returned* returned = std::get_if<Returned>(&outcome.value())) {
      if (PendingValue* pending = std::get_if<PendingValue>(returned))
        return await_value(run, std::move(*pending));
      run->created(std::move(std::get<HeldValue>(*returned)));
      forget(run->served, std::nullopt);
    } else {
      send_answer(run->served, std::move(std::get<Response>(outcome.value())));
    }
  } else if (run->created) {
    if (!session_options_.mutants.on(Mutant::remote_error_not_stored))
      run->created(outcome.error());
    forget(run->served, outcome.error().kind);
  } else {
    answer_error(run->served, outcome.error());
  }
  run->target.object.drop(strand_);
  if (run->done) run->done();
}

void ServedCalls::await_value(const std::shared_ptr<Run>& run, PendingValue pending) {
  // Nobody else waits for it; but a creation's value may be waited for by all who have references.
  if (!run->created && run->served->cancelled) {
    strand_.release_later(std::make_shared<PendingValue>(std::move(pending)));
    stop_awaiting(run);
    given_up_.erase(run->served->call.id);  // Nothing is to come.
    return;
  }
  const Call& call = run->served->call;
  run->served->only_waits =
      call.kind == CallKind::function && registry_.functions()[call.function].only_waits;
  run->served->on_given_up = [this, weak = std::weak_ptr(run)] {
    if (const std::shared_ptr<Run> run = weak.lock()) stop_awaiting(run);
  };
  pending.observe([this, run](Result<HeldValue> value) {
    run->served->on_given_up = nullptr;
    run->served->only_waits = false;
    if (run->given_up) {
      given_up_.erase(run->served->call.id);
      run->target.object.drop(strand_);
      if (value.ok()) value.value().drop(strand_);
      return;
    }
    if (!value.ok()) return conclude(run, value.error());
    if (run->created) {
      value.value().streams = run->served->execution->streams;
      const InStreams in(value.value().streams);
      const AllMarks made_by = std::exchange(value.value().made_by, {});
      if (!session_options_.mutants.on(Mutant::value_ahead_of_its_future)) join_all(made_by);
      return conclude(run, Outcome(Returned(std::move(value).value())));
    }
    if (session_options_.mutants.on(Mutant::context_lost_in_async)) run->served->call.context = {};
    // The value is encoded as user code of the call, off the strand.
    auto done = [this, run] {
      run->target.object.drop(strand_);
      if (run->done) run->done();
    };
    answer(run->served, {std::move(value).value(), run->target.monitor}, std::move(done));
  });
}

void ServedCalls::answer(const std::shared_ptr<ServedCall>& served, ServedTarget value, Task done) {
  if (sessions_.leaves_unread(served->caller))
    return until_read_[served->caller].push_back(
        [this, served, value = std::move(value), done = std::move(done)]() mutable {
          answer(served, std::move(value), std::move(done));
        });
  if (!served->execution) {
    served->label = "fetch";
    if (MaybeError kept_out = why_not_fetched(served->caller, value.object.type->type)) {
      answer_error(served, *kept_out);
      if (done) done();
      return;
    }
    strand_.make_execution(served->execution, served->call.id, served->label);
    served->execution->streams = value.object.streams;
    fix_devices(*served);
  }
  auto monitor = value.monitor;
  auto strand = strand_.shared_from_this();
  Task enter = [this, served, value = std::move(value), strand, done = std::move(done)]() mutable {
    ++running_;
    strand_.runtime().execute(
        *served->execution, StackPlacement::inline_,
        [this, served, value = std::move(value), strand, done = std::move(done)]() mutable {
          auto encoded = std::make_shared<Result<Response>>(guarded(*served, [&] {
            const InStreams in(served->execution->streams);
            const EngineThreads engine(strand_.devices());
            if (!session_options_.mutants.on(Mutant::answer_ahead_of_its_future))
              join_all(value.object.made_by);
            return encode(*served, value.object);
          }));
          strand->post_always([this, served, value = std::move(value), encoded, strand,
                               done = std::move(done)]() mutable {
            value.object.drop(*strand);
            if (strand->killed()) return;
            --running_;
            if (value.monitor) value.monitor->leave();
            if (strand->closed()) return;
            if (encoded->ok())
              send_answer(served, std::move(*encoded).value());
            else
              answer_error(served, encoded->error());
            if (done) done();
            strand_.progressed();
          });
        });
  };
  if (monitor) return monitor->enter(std::move(enter));
  enter();
}

void ServedCalls::start_queued() {
  while (!queue_.empty() && running_outer_ < options_.execution_limit) {
    begin(queue_.pop());
  }
}

}  // namespace rehearsal
