#include "core/api/registered_thread.h"

#include "core/api/worker.h"
#include "core/node/node_parts.h"

namespace rehearsal {
namespace {

// Distinguishes the paths of the user's threads from all others.
constexpr uint64_t kThreads = 0x74687265616473;

void end_later(const std::shared_ptr<NodeStrand>& strand,
               const std::shared_ptr<Execution>& execution) {
  strand->post_always([strand, execution] { strand->end(*execution); });
}

}  // namespace

// Its random numbers depend on the names of worker and thread, and on how many of that name there
// were before it.
std::shared_ptr<Execution> NodeParts::begin_thread(const std::string& name) {
  struct Named {
    std::string name;
    std::optional<Execution> execution;
  };
  auto named = std::make_shared<Named>();
  named->name = name;
  const CausalId id{options.incarnation, mix(mix(main->path(), kThreads), hash_text(name)),
                    threads_[name]++};
  strand->make_execution(named->execution, id, named->name);
  const Hash128 threads = mix(mix(main->stream(), kThreads), hash_text(name));
  named->execution->set_stream(CausalId{id.incarnation, threads, id.ordinal}.execution_path());
  strand->begin(*named->execution);
  return {named, &*named->execution};
}

RegisteredThread::RegisteredThread(std::shared_ptr<NodeStrand> strand,
                                   std::shared_ptr<Execution> execution)
    : strand_(std::move(strand)),
      execution_(std::move(execution)),
      adopted_(strand_->adopt_thread(*execution_)) {
  if (adopted_ != nullptr) return;
  end_later(strand_, execution_);
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "no thread can be registered here: a worker that is recorded has only "
                          "those of the library",
                  .worker = strand_->name(),
                  .function = "register_thread"});
}

// Its nodes are noted while it still runs the execution.
RegisteredThread::~RegisteredThread() {
  end_later(strand_, execution_);
  adopted_.reset();
}

RegisteredThread Worker::register_thread(const std::string& name) const {
  const std::shared_ptr<NodeStrand>& strand = caller()->strand();
  const Execution* const running = strand->running_or_null();
  if (running != nullptr)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "this stack is known to the worker already, as '" +
                            std::string(running->label()) +
                            "'. A std::thread that the main has started registers itself; in the "
                            "simulator there are none: make work run beside the main by rpc_async",
                    .worker = strand->name(),
                    .function = "register_thread"});
  std::shared_ptr<Execution> execution;
  caller()->visit_strand("a thread to be registered",
                         [&] { execution = caller()->node().begin_thread(name); });
  return {strand, std::move(execution)};
}

}  // namespace rehearsal
