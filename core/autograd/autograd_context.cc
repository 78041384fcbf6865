#include "core/api/autograd_context.h"

#include <ATen/Functions.h>

#include "core/autograd/contexts.h"
#include "core/base/call_bounds.h"
#include "core/base/check.h"
#include "core/functions/function_registry.h"

namespace rehearsal {
namespace {

[[noreturn]] void refuse(const Caller& caller, std::string text) {
  throw RpcError({.kind = ErrorKind::autograd,
                  .text = std::move(text),
                  .worker = caller.strand()->name(),
                  .function = "backward",
                  .chain = {}});
}

std::vector<WalkRoot> walk_roots(const Caller& caller, const std::vector<at::Tensor>& roots) {
  if (roots.empty()) refuse(caller, "there are no roots");
  std::vector<WalkRoot> checked;
  for (const at::Tensor& root : roots) {
    if (!root.defined() || !root.requires_grad())
      refuse(caller, "a root does not require gradients");
    if (root.numel() != 1) refuse(caller, "a root has more elements than one: add them up first");
    checked.push_back({torch::autograd::impl::gradient_edge(root), at::ones_like(root)});
  }
  return checked;
}

// The earlier of what was asked for and what the running execution has left.
std::optional<Instant> deadline_of(const NodeStrand& strand, Duration time,
                                   const std::optional<Instant>& inherited) {
  if (time.count() == 0) return inherited;
  const Instant asked = strand.runtime().now() + time;
  return inherited ? std::min(asked, *inherited) : asked;
}

// As a call that runs here and now.
void trace_begin(const NodeStrand& strand, const CausalId& id,
                 const std::optional<Instant>& deadline) {
  const Duration left =
      deadline ? std::max(*deadline - strand.runtime().now(), Duration(1)) : Duration{};
  for (const EventKind kind : {EventKind::api_call, EventKind::call_executed})
    strand.trace().on_event(
        {.kind = kind,
         .worker = strand.self(),
         .peer = strand.self(),
         .id = id,
         .number = kind == EventKind::api_call ? static_cast<uint64_t>(left.count()) : 0,
         .text = "backward"});
}

void trace_end(const NodeStrand& strand, const CausalId& id, const Status& status) {
  strand.trace().on_event(
      {.kind = EventKind::call_completed,
       .worker = strand.self(),
       .peer = strand.self(),
       .id = id,
       .number = status.ok() ? 0 : 1 + static_cast<uint64_t>(status.error().kind)});
}

void run_pass(const Caller& caller, const ContextName& context,
              const std::vector<at::Tensor>& roots, const BackwardOptions& options) {
  NodeStrand& strand = *caller.strand();
  Execution& running = strand.running();
  const CausalId id = running.next_id();
  std::vector<WalkRoot> checked = walk_roots(caller, roots);
  const CallBounds bounds = call_bounds(running);
  const Streams made_in = StreamSet::current(strand.devices());
  Status outcome = Unit{};
  const Status waited = strand.wait("a backward pass", id, [&](WaitHandle wait) {
    const std::optional<Instant> deadline =
        deadline_of(strand, options.deadline.or_default({}), bounds.deadline);
    trace_begin(strand, id, deadline);
    caller.contexts().start_pass(context,
                                 {.roots = std::move(checked),
                                  .retain_graph = options.retain_graph || options.create_graph,
                                  .create_graph = options.create_graph,
                                  .mode = options.mode,
                                  .deadline = deadline,
                                  .made_in = made_in,
                                  .done = [&outcome, wait, id, &strand](Status status) {
                                    trace_end(strand, id, status);
                                    if (!wait.lasts()) return;
                                    outcome = std::move(status);
                                    wait.end();
                                  }});
  });
  if (!waited.ok()) throw RpcError(waited.error());
  std::move(outcome).or_throw();
}

// The calling code reads them in its own streams, behind those that have made them.
void use_here(const LeafGradients& gradients, const StreamSet& made_in, const NodeStrand& strand) {
  const Streams here = StreamSet::current(strand.devices());
  if (!strand.mutants().on(Mutant::gradients_read_early)) here->after(made_in);
  if (strand.mutants().on(Mutant::gradients_not_recorded)) return;
  for (const LeafGradient& leaf : gradients.all())
    if (leaf.gradient.defined() && !leaf.gradient.device().is_cpu())
      leaf.gradient.record_stream(here->streams().at(leaf.gradient.device().index()));
}

LeafGradients gradients_in(const Caller& caller, const ContextName& context) {
  Result<LeafGradients> gradients = LeafGradients();
  Streams made_in;
  const Status waited = caller.strand()->wait("gradients", context.id, [&](WaitHandle wait) {
    gradients = caller.contexts().gradients(context);
    made_in = caller.contexts().streams_of(context);
    wait.end();
  });
  if (!waited.ok()) throw RpcError(waited.error());
  if (made_in != nullptr && gradients.ok()) use_here(gradients.value(), *made_in, *caller.strand());
  return std::move(gradients).or_throw();
}

// Serves AutogradContext::backward_at. `nanoseconds`: how long the pass may take; zero: no limit.
// The call itself has none: its caller must not give up a pass that may yet succeed.
void backward_here(CallContext& call, const RRef<at::Tensor>& root, bool retain_graph,
                   bool create_graph, bool fast, int64_t nanoseconds) {
  backward(call, {root.local_value()},
           {.retain_graph = retain_graph,
            .create_graph = create_graph,
            .mode = fast ? PassMode::fast : PassMode::smart,
            .deadline = Timeout(Duration(nanoseconds))});
}

}  // namespace

struct AutogradContext::Ending {
  Ending(std::shared_ptr<const Caller> made_by, const AutogradContextId& context)
      : caller(std::move(made_by)), id(context) {}
  ~Ending() {
    caller->strand()->post(Tagged(
        CausalIdHash()(id), [contexts = &caller->contexts(), id = id] { contexts->end(id); }));
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  const std::shared_ptr<const Caller> caller;
  const AutogradContextId id;
};

AutogradContext::AutogradContext(Calls calls) : Calls(std::move(calls)) {
  NodeStrand& strand = *caller()->strand();
  const AutogradContextId id{strand.running().next_id()};
  record_in({id, strand.self()});
  strand.post([contexts = &caller()->contexts(), id] { contexts->open(id); });
  ending_ = std::make_shared<const Ending>(caller(), id);
}

Recording AutogradContext::record() const {
  return {caller()->strand(), std::make_shared<const ContextName>(*context_name()), ending_};
}

Recording::Recording(std::shared_ptr<NodeStrand> strand, RecordedIn context,
                     std::shared_ptr<const void> kept)
    : strand_(std::move(strand)),
      execution_(&strand_->running()),
      before_(execution_->context),
      kept_(std::move(kept)) {
  if (before_ != nullptr && *before_ != *context)
    throw RpcError({.kind = ErrorKind::autograd,
                    .text = "this execution is recorded in autograd context " +
                            to_string(before_->id) +
                            " already, by a Recording or by the call that it serves: call through "
                            "context " +
                            to_string(context->id) + " itself",
                    .worker = strand_->name(),
                    .function = "record"});
  execution_->context = std::move(context);
}

Recording::~Recording() {
  if (strand_->running_or_null() == execution_) execution_->context = std::move(before_);
}

void AutogradContext::backward(const std::vector<at::Tensor>& roots,
                               const BackwardOptions& options) const {
  run_pass(*caller(), *context_name(), roots, options);
}

void AutogradContext::backward(const std::vector<at::Tensor>& roots, bool retain_graph,
                               Timeout deadline) const {
  backward(roots, {.retain_graph = retain_graph, .deadline = deadline});
}

void AutogradContext::backward_at(const RRef<at::Tensor>& root,
                                  const BackwardOptions& options) const {
  with_timeout(Timeout::never())
      .rpc_sync(root.owner(), &backward_here, root, options.retain_graph, options.create_graph,
                options.mode == PassMode::fast,
                static_cast<int64_t>(options.deadline.or_default({}).count()));
}

void AutogradContext::backward_at(const RRef<at::Tensor>& root, bool retain_graph,
                                  Timeout deadline) const {
  backward_at(root, {.retain_graph = retain_graph, .deadline = deadline});
}

void AutogradContext::backward_at(const std::vector<RRef<at::Tensor>>& roots,
                                  const BackwardOptions& options) const {
  std::vector<Future<at::Tensor>> fetched;
  for (const RRef<at::Tensor>& root : roots) fetched.push_back(to_here_async(root));
  std::vector<at::Tensor> here;
  for (const Future<at::Tensor>& root : fetched) here.push_back(root.wait());
  backward(here, options);
}

LeafGradients AutogradContext::get_gradients() const {
  return gradients_in(*caller(), *context_name());
}

LeafGradients get_gradients(const CallContext& call) {
  if (!call.autograd_context())
    throw RpcError({.kind = ErrorKind::autograd,
                    .text = "the call is recorded in no autograd context: make it in one",
                    .worker = call.caller()->strand()->name(),
                    .function = {},
                    .chain = {}});
  return gradients_in(*call.caller(), *call.autograd_context());
}

void backward(const CallContext& call, const std::vector<at::Tensor>& roots,
              const BackwardOptions& options) {
  if (!call.autograd_context()) refuse(*call.caller(), "the call is recorded in no context");
  run_pass(*call.caller(), *call.autograd_context(), roots, options);
}

void register_autograd(FunctionRegistry& registry) {
  registry.function("rehearsal.backward", &backward_here);
}

}  // namespace rehearsal
