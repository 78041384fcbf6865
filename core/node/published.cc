#include "core/api/published.h"

#include <algorithm>

#include "core/api/call_context.h"
#include "core/base/short_text.h"
#include "core/base/symbols.h"
#include "core/rref/published_names.h"

namespace rehearsal {
namespace {

void check_published_name(const Caller& caller, const std::string& name) {
  if (name.size() <= kPublishedNameMax) return;
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "a reference is published under a name of " +
                          std::to_string(kPublishedNameMax) + " bytes at most, not of " +
                          std::to_string(name.size()) + ": '" + short_name(name) + "'",
                  .worker = caller.strand()->name()});
}

// Serves the worker that publishes: its answer leaves when the name is there.
Future<NamedReference> find_published(CallContext& context, const std::string& name,
                                      const std::string& type) {
  const Caller& caller = *context.caller();
  check_published_name(caller, name);
  const std::shared_ptr<NodeStrand> strand = caller.strand();
  auto found = std::make_shared<FutureState<NamedReference>>(strand, CausalId{});
  // The call stays for as long as its answer is owed.
  strand->post([names = &caller.published(), name, type, asker = &strand->running(), found] {
    names->look_up(name, type, *asker, found);
  });
  return Future<NamedReference>(found);
}

}  // namespace

void register_published(FunctionRegistry& registry) {
  registry.function("rehearsal.lookup", &find_published).runs_inline().only_waits();
}

void publish(const Caller& caller, const std::string& name, NamedReference reference) {
  if (reference.handle == nullptr || name.empty())
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = name.empty() ? "a reference is published under a name, not under ''"
                                         : "an empty reference cannot be published as '" +
                                               short_name(name) + "'",
                    .worker = caller.strand()->name()});
  check_published_name(caller, name);
  Status published = Unit{};
  caller.visit_strand("the published names",
                      [&] { published = caller.published().publish(name, std::move(reference)); });
  if (!published.ok()) throw RpcError(published.error());
}

void unpublish(const Caller& caller, const std::string& name) {
  check_published_name(caller, name);
  Status unpublished = Unit{};
  caller.visit_strand("the published names",
                      [&] { unpublished = caller.published().unpublish(name); });
  if (!unpublished.ok()) throw RpcError(unpublished.error());
}

NamedReference look_up(const Caller& caller, const Target& worker, const std::string& name,
                       const std::type_info& type, Timeout timeout) {
  check_published_name(caller, name);
  const WorkerId at = caller.find(worker);
  const std::optional<Instant> deadline = caller.await_worker(at, timeout);
  Draft draft = function_draft(caller, at, &find_published, name, type_name(type));
  draft.timeout = Timeout::never();
  if (deadline) {
    const Duration left = *deadline - caller.strand()->runtime().now();
    draft.timeout = Timeout(std::max(left, Duration(1)));
  }
  Result<NamedReference> found = caller.wait_typed<NamedReference>(std::move(draft));
  if (found.ok()) return std::move(found).value();
  Error error = found.error();
  if (error.kind == ErrorKind::timeout)
    error.text = "worker '" + caller.names()[at.value] + "' has published nothing as '" +
                 short_name(name) + "' in time: " + error.text;
  throw RpcError(std::move(error));
}

}  // namespace rehearsal
